// A user's own store, named by the path of its module.

import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createSemel } from '../../src/index.ts';

const memory = join(import.meta.dirname, '../../src/store/memory.ts');
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'semel-module-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, 0o644);
  return path;
}

test('is used like any other', async () => {
  const path = write(
    'store.mjs',
    `import { memoryStore } from ${JSON.stringify(memory)};\nexport default async () => memoryStore();`,
  );
  await using semel = createSemel({ store: `module:${path}`, namespace: 'shop', onWarning: () => undefined });
  const send = () => semel.once('mail.send', { key: 'welcome-7' }, async () => 'sent');
  expect([await send(), await send()]).toEqual(['sent', 'sent']);
});

test('is never looked for by the name of a package', () => {
  for (const name of ['my-store', '@scope/store', 'store.mjs', ''])
    expect(() => createSemel({ store: `module:${name}`, namespace: 'shop' })).toThrow(
      /not the path of a file/,
    );
});

test('is refused if it is missing, exports no store, or can be written by others', async () => {
  const open = (path: string) => createSemel({ store: `module:${path}`, namespace: 'shop' }).open();
  await expect(open(join(folder, 'absent.mjs'))).rejects.toThrow(/there is no file/);
  await expect(open(write('other.mjs', 'export default 1;'))).rejects.toThrow(
    /neither a store nor a function/,
  );
  const path = write('shared.mjs', "throw new Error('it was run');");
  chmodSync(path, 0o666);
  await expect(open(path)).rejects.toThrow(/every user can write/);
});

const running = "throw new Error('it was run');";

test('is refused where others can replace it', async () => {
  const shared = join(folder, 'shared');
  mkdirSync(shared);
  chmodSync(shared, 0o777);
  const path = write('shared/store.mjs', running);
  const open = () => createSemel({ store: `module:${path}`, namespace: 'shop' }).open();
  await expect(open()).rejects.toThrow(/every user can replace files/);
  // As /tmp is: nobody can replace another's file.
  chmodSync(shared, 0o1777);
  await expect(open()).rejects.toThrow(/it was run/);
});

test('is refused if others can replace the link to it', async () => {
  const path = write('linked.mjs', running);
  const shared = join(folder, 'links');
  mkdirSync(shared);
  chmodSync(shared, 0o777);
  symlinkSync(path, join(shared, 'store.mjs'));
  const store = `module:${join(shared, 'store.mjs')}`;
  const open = () => createSemel({ store, namespace: 'shop' }).open();
  await expect(open()).rejects.toThrow(/every user can replace files/);
  chmodSync(shared, 0o755);
  await expect(open()).rejects.toThrow(/it was run/);
});

test.skipIf(process.getuid?.() !== 0)("is refused in another user's folder, who can replace it", async () => {
  const theirs = join(folder, 'theirs');
  mkdirSync(theirs);
  const path = write('theirs/store.mjs', running);
  chownSync(theirs, 65_534, 65_534);
  const open = () => createSemel({ store: `module:${path}`, namespace: 'shop' }).open();
  await expect(open()).rejects.toThrow(/theirs belongs to another user/);
});

test.skipIf(process.getuid?.() !== 0)("is refused if it is another user's", async () => {
  const path = write('theirs.mjs', running);
  chownSync(path, 65_534, 65_534);
  const open = () => createSemel({ store: `module:${path}`, namespace: 'shop' }).open();
  await expect(open()).rejects.toThrow(/belongs to another user/);
});

test('is not taken from whatever folder a program is started in, through the environment', async () => {
  const path = write('here.mjs', running);
  const before = process.cwd();
  const open = async () => createSemel({ namespace: 'shop' }).open();
  try {
    vi.stubEnv('SEMEL_STORE', 'module:./here.mjs');
    vi.spyOn(process, 'cwd').mockReturnValue(folder);
    await expect(open()).rejects.toThrow(/Write its absolute path/);
    vi.stubEnv('SEMEL_STORE', `module:${path}`);
    await expect(open()).rejects.toThrow(/it was run/);
  } finally {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  }
  expect(process.cwd()).toBe(before);
});
