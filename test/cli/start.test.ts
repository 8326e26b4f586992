// What is kept compiled from one start to the next only makes a start faster: whatever is there, the command does the same.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';
import { expect, test } from 'vitest';
import { place } from './place.ts';

function fresh() {
  const { path, ...here } = place();
  const folder = path('cache/semel');
  const { semel } = here.with({ env: { XDG_CACHE_HOME: path('cache') } });
  const kept = () => readdirSync(folder).map((name) => join(folder, name));
  return { semel, folder, kept };
}

const job = ['run', 'job', '--per', 'none', '--', 'echo', 'ran'];
const ran = { code: 0, stdout: 'ran\n', stderr: '' };

test('the first start keeps what it compiled, for this user only, and the next one uses it as it is', async () => {
  const { semel, folder, kept } = fresh();
  expect(await semel(job)).toMatchObject(ran);
  const before = kept().map((path) => statSync(path));
  expect(kept().length).toBeGreaterThan(1);
  expect([...before, statSync(folder)].every(({ mode }) => (mode & 0o077) === 0)).toBe(true);
  expect(await semel(job)).toMatchObject(ran);
  expect(kept().map((path) => statSync(path).ino)).toEqual(before.map(({ ino }) => ino));
});

test('what is kept includes the functions that were called, as Node.js does not keep them', async () => {
  const [helped, worked] = [fresh(), fresh()];
  await helped.semel('run', '--help');
  await worked.semel(job);
  const size = ({ kept }: typeof helped) =>
    statSync(kept().find((path) => path.includes('guarded-')) as string).size;
  expect(size(worked)).toBeGreaterThan(2 * size(helped));
});

test.each([
  ['nothing', Buffer.alloc(0)],
  ['noise', Buffer.alloc(50_000, 'x')],
  ['the half of it', undefined],
])('where %s is kept, it is compiled again and replaced', async (_, noise) => {
  const { semel, kept } = fresh();
  await semel(job);
  const planted = new Map<string, Buffer>();
  for (const path of kept()) {
    const whole = readFileSync(path);
    planted.set(path, noise ?? whole.subarray(0, whole.length / 2));
    writeFileSync(path, planted.get(path) as Buffer);
  }
  expect(await semel(job)).toMatchObject(ran);
  for (const [path, data] of planted) expect(readFileSync(path).equals(data)).toBe(false);
});

test('what others could have written is not run', async () => {
  const { semel, kept } = fresh();
  await semel(job);
  for (const path of kept()) chmodSync(path, 0o666);
  expect(await semel(job)).toMatchObject(ran);
  expect(kept().map((path) => statSync(path).mode & 0o777)).toEqual(kept().map(() => 0o600));
});

test.each([
  ['an empty HOME', { XDG_CACHE_HOME: '', HOME: '' }, '.cache/semel'],
  ['a relative HOME', { XDG_CACHE_HOME: '', HOME: 'home' }, 'home/.cache/semel'],
  ['a relative XDG_CACHE_HOME', { XDG_CACHE_HOME: 'cache' }, 'cache/semel'],
])('under %s, code in the working folder is not run, and none is left there', async (_, env, where) => {
  const { path, ...here } = place();
  const { semel } = here.with({ env });
  await semel(job);
  expect(existsSync(path(where))).toBe(false);
  // V8 knows a text by its length: what was compiled of another one runs in its place.
  const built = dirname(process.env.SEMEL_BUILT_COMMAND as string);
  mkdirSync(path(where), { recursive: true });
  for (const name of readdirSync(built).filter((each) => each.endsWith('js'))) {
    const length = readFileSync(join(built, name), 'latin1').length + wrapped('').length;
    const planted = wrapped("process.stdout.write('planted');").padEnd(length);
    const file = join(path(where), `${name}-${process.version}-${process.arch}`);
    writeFileSync(file, new Script(planted).createCachedData(), { mode: 0o600 });
  }
  expect(await semel(job)).toMatchObject(ran);
});

function wrapped(text: string): string {
  return `(function (exports, require, module, __filename, __dirname) {${text}\n})`;
}

test('starts even where nothing can be cached', async () => {
  const { path, file, ...here } = place();
  file('no-folder', '');
  const { semel } = here.with({ env: { XDG_CACHE_HOME: path('no-folder') } });
  expect(await semel(job)).toMatchObject(ran);
  mkdirSync(path('elsewhere'));
  expect(await here.with({ env: { XDG_CACHE_HOME: '', HOME: path('elsewhere') } }).semel(job)).toMatchObject(
    ran,
  );
  expect(readdirSync(path('elsewhere/.cache/semel')).length).toBeGreaterThan(1);
});

test('the command is ASCII, as its start reads it', () => {
  const folder = dirname(process.env.SEMEL_BUILT_COMMAND as string);
  const others = readdirSync(folder, { withFileTypes: true }).filter(
    (entry) => entry.isFile() && /[^\0-\x7f]/.test(readFileSync(join(folder, entry.name), 'utf8')),
  );
  expect(others).toEqual([]);
});

test('the built command may be executed as it is, as `npx semel` in a clone does', () => {
  expect(statSync(process.env.SEMEL_BUILT_COMMAND as string).mode & 0o111).toBe(0o111);
});
