// A reporter for jasmine that writes which specs start and how they end.
'use strict';
const fs = require('fs');
const path = require('path');

// Taken before any test: a test may replace these, and change the folder, until after its outcome is known.
const top = process.cwd();
const {writeSync} = fs;
const {stringify} = JSON;
const report = fs.openSync(process.env.ITERDEV_TEST_EVENTS, 'a');
let waiting = '';

function write(event, test) {
  waiting += stringify({event, test: test || ''}) + '\n';
  try {
    writeSync(report, waiting);
    waiting = '';
  } catch (error) {
    // The whole file system is replaced; the next event is written together with this one.
  }
}
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
