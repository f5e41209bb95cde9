// A reporter for mocha, of any version, that writes which tests start and how they end.
'use strict';
const path = require('path');
const {top, write} = require('./event_file.cjs');

function name(test) {
  let titles = [];
  // In parallel mode the parents have no titles; before version 6 a test does not know its own path.
  if (test.titlePath) titles = test.titlePath().filter(Boolean);
  else for (let part = test; part && part.title; part = part.parent) titles.unshift(part.title);
  const file = test.file || (test.parent && test.parent.file);
  const where = file ? path.relative(top, file).split(path.sep).join('/') + '::' : '';
  // The title of a hook ends with the test that it ran for.
  return where + (titles.length ? titles.join(' > ') : test.fullTitle());
}

function withoutBail(suite) {
  if (suite.bail) suite.bail(false);
  (suite.suites || []).forEach(withoutBail);
}

module.exports = function Events(runner) {
  withoutBail(runner.suite);
  write('begin');
  runner.on('test', (test) => write('start', name(test)));
  runner.on('pass', (test) => write('passed', name(test)));
  runner.on('pending', (test) => write('skipped', name(test)));
  runner.on('fail', (test, error) => {
    write('failed', name(test));
    console.log('FAILED ' + name(test) + '\n' + ((error && (error.stack || error.message)) || error));
  });
  runner.on('end', () => write('end'));
};
