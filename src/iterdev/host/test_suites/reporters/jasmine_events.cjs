// A reporter for jasmine that writes which specs start and how they end.
'use strict';
const path = require('path');
const {top, write} = require('./event_file.cjs');

const outcomes = {passed: 'passed', failed: 'failed'};

function name(result) {
  const where = result.filename ? path.relative(top, result.filename) + '::' : '';
  return where + result.fullName;
}

function show(result) {
  for (const failure of result.failedExpectations || []) {
    console.log('FAILED ' + name(result) + '\n' + (failure.message || '') + '\n' + (failure.stack || ''));
  }
}

module.exports = class Events {
  jasmineStarted() {
    write('begin');
  }
  specStarted(result) {
    write('start', name(result));
  }
  specDone(result) {
    write(outcomes[result.status] || 'skipped', name(result));
    show(result);
  }
  suiteDone(result) {
    if ((result.failedExpectations || []).length) write('failed', name(result));
    show(result);
  }
  jasmineDone(result) {
    if ((result.failedExpectations || []).length) write('failed', '(outside of the specs)');
    for (const failure of result.failedExpectations || []) console.log(failure.message);
    write('end');
  }
};
