// The namespace of a program that names none: that of its own package, and never shared with another project unnoticed.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createSemel } from 'semel';
import { memoryStore } from 'semel/memory';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findApplication } from '../../src/semel/place/application.ts';
import { ownPrefix, ownSchema } from '../servers/own-place.ts';

const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'semel-namespace-')));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const path = (...parts: string[]) => join(scratch, ...parts);

function file(at: string, content = ''): string {
  mkdirSync(dirname(path(at)), { recursive: true });
  writeFileSync(path(at), content);
  return path(at);
}

const manifest = (at: string, fields: object) => file(join(at, 'package.json'), JSON.stringify(fields));

describe('the application', () => {
  manifest('app', { name: 'shop' });
  manifest('app/dist', { type: 'module' });
  file('app/dist/server.js');
  manifest('app/node_modules/next', { name: 'next' });
  file('app/node_modules/next/dist/bin/next');
  mkdirSync(path('app/node_modules/.bin'), { recursive: true });
  symlinkSync('../next/dist/bin/next', path('app/node_modules/.bin/next'));
  manifest('app/node_modules/.pnpm/vitest@4/node_modules/vitest', { name: 'vitest' });
  file('app/node_modules/.pnpm/vitest@4/node_modules/vitest/dist/worker.js');
  manifest('mono', { name: 'mono' });
  manifest('mono/apps/one', { name: 'one' });
  manifest('mono/apps/two', { name: 'two' });
  file('mono/apps/two/main.ts');
  manifest('mono/node_modules/next', { name: 'next' });
  file('mono/node_modules/next/cli.js');
  manifest('global/node_modules/pm2', { name: 'pm2' });
  file('global/node_modules/pm2/lib/god.js');
  manifest('global/node_modules/robot', { name: 'robot', dependencies: { semel: '1' } });
  file('global/node_modules/robot/cli.js');
  manifest('runtime', { name: 'platform' });
  file('runtime/index.mjs');
  manifest('releases/7', { name: 'api' });
  file('releases/7/server.js');
  symlinkSync('releases/7', path('current'));
  symlinkSync(path('releases/7/server.js'), path('serve'));
  file('plain/job.mjs');
  manifest('broken', {});
  file('broken/package.json', '{ "name": "bro');
  mkdirSync(path('elsewhere'), { recursive: true });

  const bundled = path('app/dist');
  const inApp = path('app/node_modules/semel/dist');
  const of = (
    started: string | undefined,
    cwd = 'elsewhere',
    installed: string | undefined = bundled,
    shellCwd?: string,
  ) => {
    const at = started === undefined ? undefined : path(started);
    return findApplication({
      started: at,
      cwd: realpathSync(path(cwd)),
      shellCwd: shellCwd === undefined ? undefined : path(shellCwd),
      installed,
    });
  };

  test.each([
    ['is that of the program, wherever it is started', of('app/dist/server.js'), 'shop', 'app'],
    ['is not its launcher', of('app/node_modules/.bin/next'), 'shop', 'app'],
    [
      'is not the launcher behind links',
      of('app/node_modules/.pnpm/vitest@4/node_modules/vitest/dist/worker.js', 'app/dist'),
      'shop',
      'app',
    ],
    [
      'in a monorepo is the launched one',
      of('mono/node_modules/next/cli.js', 'mono/apps/one'),
      'one',
      'mono/apps/one',
    ],
    ['in a monorepo is the started one', of('mono/apps/two/main.ts', 'mono'), 'two', 'mono/apps/two'],
    ['is not a global launcher', of('global/node_modules/pm2/lib/god.js', 'app', inApp), 'shop', 'app'],
    ['is not a platform', of('runtime/index.mjs', 'elsewhere', inApp), 'shop', 'app'],
    [
      'may be installed, if it uses semel',
      of('global/node_modules/robot/cli.js', 'app'),
      'robot',
      'global/node_modules/robot',
    ],
    ['of a link is what it leads to', of('serve'), 'api', 'releases/7'],
    ['keeps the name of a link that is re-pointed', of('current/server.js'), 'api', 'current'],
    [
      'is known in a bundle too',
      findApplication({
        started: path('app/dist/server.js'),
        cwd: path('elsewhere'),
        shellCwd: undefined,
        installed: undefined,
      }),
      'shop',
      'app',
    ],
    ['of a REPL is that of its folder', of(undefined, 'app/dist'), 'shop', 'app'],
    [
      'of a worker without a file is where semel is installed',
      of(undefined, 'elsewhere', inApp),
      'shop',
      'app',
    ],
    ['of a REPL keeps the link of the shell', of(undefined, 'current', bundled, 'current'), 'api', 'current'],
    ['without a package has no name, but a folder', of('plain/job.mjs'), undefined, 'plain'],
  ] as const)('%s', (_, found, name, root) => {
    expect(found).toEqual({ name, root: path(root) });
  });

  test('of a program without a file is that of its folder, by its whole path', () => {
    for (const started of ['-', '[eval]', '[worker eval]', './dist/server.js'])
      expect(findApplication({ started, cwd: path('app'), shellCwd: undefined, installed: bundled })).toEqual(
        {
          name: 'shop',
          root: path('app'),
        },
      );
    const nowhere = { cwd: '/', shellCwd: undefined, installed: bundled };
    expect(findApplication({ started: undefined, ...nowhere })).toEqual({ name: undefined, root: undefined });
  });

  test('whose package.json is a pipe or a device is refused, not waited for', () => {
    mkdirSync(path('pipe'));
    execFileSync('mkfifo', [path('pipe/package.json')]);
    mkdirSync(path('device'));
    symlinkSync('/dev/zero', path('device/package.json'));
    for (const program of ['pipe/job.mjs', 'device/job.mjs']) {
      file(program);
      expect(() => of(program)).toThrow(/package.json.* cannot be read.*not a regular file/);
    }
  });

  // Only root can make files of another user.
  test.runIf(process.geteuid?.() === 0)('is not named by a stranger, in a folder that all can write', () => {
    const nobody = 65_534;
    const planted = manifest('open', { name: 'planted' });
    file('open/mine/job.mjs');
    const name = () => of('open/mine/job.mjs').name;
    expect(name()).toBe('planted');
    chownSync(planted, nobody, nobody);
    // What is deployed by another user is theirs to name.
    expect(name()).toBe('planted');
    chmodSync(path('open'), 0o1777);
    expect(name()).toBeUndefined();
    rmSync(planted);
    symlinkSync(path('app/package.json'), planted);
    lchownSync(planted, nobody, nobody);
    expect(name()).toBeUndefined();
    rmSync(planted);
    execFileSync('mkfifo', [planted]);
    chownSync(planted, nobody, nobody);
    expect(name()).toBeUndefined();
  });

  test('whose package.json cannot be read is refused: under another name every effect would run again', () => {
    file('broken/job.mjs');
    expect(() => of('broken/job.mjs')).toThrow(/package.json, which names the namespace, cannot be read/);
  });
});

describe('two projects of one name', () => {
  const started = process.argv[1] as string;
  const environment = process.env.SEMEL_NAMESPACE;
  beforeEach(() => delete process.env.SEMEL_NAMESPACE);
  afterEach(() => {
    process.argv[1] = started;
    if (environment !== undefined) process.env.SEMEL_NAMESPACE = environment;
  });
  for (const project of ['first', 'second']) {
    manifest(project, { name: 'twin' });
    file(`${project}/main.js`);
  }

  /** A process of the project: what it got, and what it was warned of. */
  async function run(entry: string, store: string, options: { readonly namespace?: string } = {}) {
    process.argv[1] = path(entry);
    const warnings: string[] = [];
    await using semel = createSemel({ store, ...options, onWarning: (message) => warnings.push(message) });
    const value = await semel.once('mail', 1, () => entry);
    const shared = warnings.filter((warning) => warning.includes('use the namespace'));
    return { value, shared, semel: semel.namespace, namespaces: await semel.records.namespaces() };
  }

  const places = [
    ['SQLite', async () => `sqlite:${path('shared.db')}`],
    [
      'Postgres',
      async () => ownSchema().then(({ url, schema }) => `${url}?schema=${schema}&durability=accept-loss`),
    ],
    [
      'Redis',
      async () => {
        const own = ownPrefix();
        return own && `${own.url}?prefix=${own.prefix}&durability=accept-loss`;
      },
    ],
  ] as const;

  test.each(places)('in one ledger are told, both of them, and never before: %s', async (_, place) => {
    const store = await place();
    if (store === undefined) return;
    expect(await run('first/main.js', store)).toMatchObject({ value: 'first/main.js', shared: [] });
    expect(await run('first/main.js', store)).toMatchObject({ shared: [] });
    const second = await run('second/main.js', store);
    expect(second.shared).toHaveLength(1);
    expect(second.shared[0]).toContain(`${path('second')} and ${path('first')} use the namespace "twin"`);
    expect(second.shared[0]).toContain("createSemel({ namespace: 'second' })");
    expect((await run('first/main.js', store)).shared).toHaveLength(1);
    // The line that settles it. What is kept for this is no namespace of the user's.
    const settled = await run('second/main.js', store, { namespace: 'second' });
    expect(settled).toMatchObject({ value: 'second/main.js', shared: [], namespaces: ['second', 'twin'] });
  });

  test('are one where a link leads to the same folder, or is re-pointed', async () => {
    const store = `sqlite:${path('linked.db')}`;
    symlinkSync('first', path('home'));
    expect((await run('first/main.js', store)).shared).toEqual([]);
    expect((await run('home/main.js', store)).shared).toEqual([]);
    const deployed = `sqlite:${path('deployed.db')}`;
    expect((await run('current/server.js', deployed)).shared).toEqual([]);
    manifest('releases/8', { name: 'api' });
    file('releases/8/server.js');
    rmSync(path('current'));
    symlinkSync('releases/8', path('current'));
    expect((await run('current/server.js', deployed)).shared).toEqual([]);
  });

  test('on a store that cannot keep it are still served', async () => {
    process.argv[1] = path('first/main.js');
    const store = memoryStore();
    const opened = await store.open();
    const warnings: string[] = [];
    await using semel = createSemel({
      store: {
        ...store,
        open: async () => ({ ...opened, kind: 'own' }),
        list: () => {
          throw new TypeError('not implemented');
        },
      },
      onWarning: (message) => warnings.push(message),
    });
    expect(await semel.once('mail', 1, () => 'sent')).toBe('sent');
    expect(await semel.once('mail', 2, () => 'sent')).toBe('sent');
    expect(warnings.filter((warning) => warning.includes('could not check whether'))).toHaveLength(1);
  });

  test('without a name share "default", and are warned too', async () => {
    file('a/job.mjs');
    file('b/job.mjs');
    const store = `sqlite:${path('nameless.db')}`;
    expect(await run('a/job.mjs', store)).toMatchObject({ semel: 'default', shared: [] });
    expect((await run('b/job.mjs', store)).shared).toHaveLength(1);
  });
});

test.each(['SEMEL_NAMESPACE', 'SEMEL_STORE'])('%s that is not valid UTF-8 is refused', (name) => {
  const before = process.env[name];
  process.env[name] = name === 'SEMEL_STORE' ? 'sqlite:/caf\ufffd.db' : 'caf\ufffd';
  try {
    expect(() => createSemel({})).toThrow(`\`${name}\` is not valid UTF-8`);
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
});
