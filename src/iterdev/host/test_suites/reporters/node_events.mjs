// A reporter for `node --test` that writes which tests start and how they end; a suite only repeats its tests.
import {appendFileSync} from 'node:fs';
import {relative, sep} from 'node:path';

const report = process.env.ITERDEV_TEST_EVENTS;

const write = (event, test = '') =>
  appendFileSync(report, JSON.stringify({event, test}) + '\n');
const short = (file) => (file ? relative(process.cwd(), file).split(sep).join('/') : '');

export default async function* events(source) {
  const open = new Map(); // the tests that have started, by file
  const children = new Map(); // how many tests inside of the open ones have failed, or ended at all
  write('begin');
  for await (const {type, data} of source) {
    const file = short(data?.file);
    const stack = open.get(file) ?? [];
    if (type === 'test:start') {
      stack.length = data.nesting;
      stack.push(data.name);
      open.set(file, stack);
      if (data.name !== data.file) write('start', named(file, stack));
    } else if (type === 'test:pass' || type === 'test:fail') {
      stack.length = data.nesting;
      const path = [...stack, data.name];
      const name = named(file, path);
      const inner = children.get(name) ?? {ended: 0, failed: 0};
      children.delete(name);
      const failed = type === 'test:fail' && data.todo === undefined;
      const group = data.details?.type === 'suite' || inner.ended > 0;
      const skipped = data.skip !== undefined || data.todo !== undefined;
      const repeats = group && (!failed || inner.failed > 0);
      if (!repeats) write(failed ? 'failed' : skipped ? 'skipped' : 'passed', name);
      if (stack.length) {
        const outer = named(file, stack);
        const count = children.get(outer) ?? {ended: 0, failed: 0};
        children.set(outer, {ended: count.ended + 1, failed: count.failed + (failed ? 1 : 0)});
      }
      if (failed && !repeats) yield `FAILED ${name}\n${text(data.details?.error)}\n`;
    } else if (type === 'test:stdout' || type === 'test:stderr') {
      yield data.message;
    }
  }
  write('end');
}

function named(file, path) {
  const titles = path.map((title) => (title.startsWith('/') ? short(title) : title)).join(' > ');
  return !file || titles === file ? titles : `${file}::${titles}`;
}

function text(error) {
  return error?.cause?.stack ?? error?.cause?.message ?? error?.stack ?? String(error?.message ?? error);
}
