// Writes what happens to the tests of a run to a file, a JSON object in each line.
'use strict';
const fs = require('fs');

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

module.exports = {top, write};
