// The package as users get it: packed, and put into the node_modules of a project that has nothing else.

import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build } from 'rolldown';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { pack } from '../../scripts/pack.ts';
import names from './doors.json' with { type: 'json' };

const root = join(import.meta.dirname, '../..');
const project = mkdtempSync(join(tmpdir(), 'semel-package-'));
const installed = join(project, 'node_modules/semel');
const doors = Object.entries(names).map(([door, { values }]) => ({ door, values }));

beforeAll(() => {
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', pack(project), '-C', installed, '--strip-components=1']);
  write('package.json', JSON.stringify({ name: 'a-project', private: true }));
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

describe('what is in it', () => {
  const listed = () =>
    globSync('**', { cwd: installed }).filter((file) => statSync(join(installed, file)).isFile());

  // Why so much: docs/internals/decisions/014-the-package-is-bundled.md.
  test('is at most 2.3 MB in at most 200 files: 1.6 MB of code, 260 KB of types, 150 KB of dashboard, 330 KB of pages', () => {
    const files = listed();
    const size = (some: readonly string[]) =>
      some.reduce((sum, file) => sum + statSync(join(installed, file)).size, 0);
    const isDashboard = (file: string) => file.startsWith('dist/dashboard/');
    const isCode = (file: string) => /^dist\/.*\.c?js$/.test(file) && !isDashboard(file);
    const isType = (file: string) => file.endsWith('.d.ts');
    const isPage = (file: string) => !file.startsWith('dist/');
    expect(size(files.filter(isCode))).toBeLessThanOrEqual(1_600_000);
    expect(size(files.filter(isType))).toBeLessThanOrEqual(260_000);
    expect(size(files.filter(isDashboard))).toBeLessThanOrEqual(150_000);
    expect(size(files.filter(isPage))).toBeLessThanOrEqual(330_000);
    expect(size(files)).toBeLessThanOrEqual(2_300_000);
    expect(files.length).toBeLessThanOrEqual(200);
  });

  test("import 'semel' loads at most five files, of at most 620 KB", () => {
    const program = `
      import('semel').then(() => console.log(JSON.stringify(Object.keys(require.cache))));`;
    const loaded = (JSON.parse(run(program)) as string[]).filter((file) => !file.endsWith('program.cjs'));
    // The fifth is the door, an ES module of one statement.
    expect(loaded.length).toBeLessThanOrEqual(4);
    expect(loaded.reduce((sum, file) => sum + statSync(file).size, 0)).toBeLessThanOrEqual(620_000);
  });

  test('has no dead links, except to examples, incidents and pages about the inside', () => {
    const inside =
      /^(docs\/internals\/|docs\/images\/|examples\/|test\/incidents\/|ARCHITECTURE\.md|CONTRIBUTING\.md|CHANGELOG\.md)/;
    const dead = listed()
      .filter((file) => /\.(md|txt)$/.test(file))
      .flatMap((file) =>
        [...readFileSync(join(installed, file), 'utf8').matchAll(/\]\(([^)\s#:]+)(#[^)\s]*)?\)/g)].map(
          ([, target]) => join(dirname(file), target!),
        ),
      )
      .filter((target) => !existsSync(join(installed, target)) && !inside.test(target));
    expect(dead).toEqual([]);
  });

  // Since npm 11.19. `prepare` counts where the package comes from a tarball or from git.
  test('has no script that npm asks a user to approve', () => {
    const { scripts } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
    const asked = ['preinstall', 'install', 'postinstall', 'prepare'];
    expect(Object.keys(scripts).filter((name) => asked.includes(name))).toEqual([]);
  });

  test('is code, declarations and what a user reads: no source, test or page about the inside', () => {
    const others = listed().filter(
      (file) =>
        !/^dist\/.*\.(js|cjs|d\.ts)$|^dist\/dashboard\/(index\.html|app\.css|icon\.svg)$|^docs\/(README|\w+\/[\w-]+)\.md$/.test(
          file,
        ),
    );
    expect(others.sort()).toEqual([
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'llms.txt',
      'package.json',
      'semel.policy.schema.json',
      'skills/semel/SKILL.md',
    ]);
  });

  test('has the pages that `semel explain` reads', () => {
    const explained = spawnSync(
      process.execPath,
      [join(installed, manifest.bin.semel), 'explain', 'IN_DOUBT'],
      {
        encoding: 'utf8',
      },
    );
    expect([explained.status, explained.stderr]).toEqual([0, '']);
    expect(explained.stdout).toContain('IN_DOUBT');
  });

  test('needs no other package, neither to run nor for its types', () => {
    expect(manifest).not.toHaveProperty('dependencies');
    expect(Object.values(manifest.peerDependenciesMeta).every(({ optional }) => optional)).toBe(true);
    const imported = /^(?:import|export)\b[^;]*?\bfrom ["']([^."'][^"']*)["']|\brequire\("([^."][^"]*)"\)/gm;
    const outside = listed()
      .filter((file) => file.startsWith('dist/'))
      .flatMap((file) => [...readFileSync(join(installed, file), 'utf8').matchAll(imported)])
      .map(([, name, required]) => name ?? required ?? '');
    expect(outside.filter((name) => !name.startsWith('node:'))).toEqual([]);
  });
});

describe.each(doors)('$door', ({ door, values }) => {
  test('lets out the same values to import and to require', () => {
    const program = `
      const required = require('${door}');
      import('${door}').then((imported) => {
        const names = Object.keys(imported).filter((name) => name !== 'module.exports').sort();
        const differ = names.filter((name) => imported[name] !== required[name] || imported[name] === undefined);
        console.log(JSON.stringify({ names, differ }));
      });`;
    expect(JSON.parse(run(program))).toEqual({ names: values, differ: [] });
  });
});

describe.each([
  ['bundler', 'esnext'],
  ['node16', 'node16'],
  ['nodenext', 'nodenext'],
])('with moduleResolution %s', (moduleResolution, module) => {
  // With node16, TypeScript does not let CommonJS require an ES module.
  test.each(module === 'node16' ? ['mts'] : ['mts', 'cts'])(
    'the declarations of every door are found and complete, in .%s',
    (extension) => {
      // Two doors that declared a class each would not fit together.
      const code = [
        ...doors.map(({ door }, index) => `import * as door${index} from '${door}';`),
        `export const all = [${doors.map((_, index) => `door${index}`).join(', ')}];`,
        "import { createSemel, type Semel, SemelError, type Store } from 'semel';",
        "import { memoryStore } from 'semel/memory';",
        "import { sqliteStore } from 'semel/sqlite';",
        "import { guard } from 'semel/ai-sdk';",
        "import type { Store as SameStore } from 'semel/store';",
        'const store: SameStore = memoryStore();',
        'const same: Store = store;',
        'export const semel: Semel = createSemel({ store: same });',
        'export const onDisk: Semel = createSemel({ store: sqliteStore({ path: "ledger.db" }) });',
        'export const tools = guard(semel, {}, {});',
        'export const code = (error: unknown) => (error instanceof SemelError ? error.code : undefined);',
        '// @ts-expect-error An effect is one of four words.',
        "semel.tool({ name: 'mail', effect: 'often', per: 'ever', run: () => 1 });",
      ];
      // `bundler` reads a .cts file only where modules are preserved.
      const options = {
        moduleResolution,
        module: module === 'esnext' ? 'preserve' : module,
        lib: ['es2024', 'esnext.disposable'],
      };
      expect(typeErrors(`main.${extension}`, code.join('\n'), options)).toBe('');
    },
  );
});

test('a tool has its types without @types/node and the DOM library too', () => {
  const code = `import { createSemel } from 'semel';
    const refund = createSemel().tool({
      name: 'refund', effect: 'irreversible', per: 'ever', identity: ['order'],
      run: async ({ order }: { order: string; amount: number }) => ({ id: order }),
    });
    export const id: Promise<string> = refund({ order: 'o-1', amount: 1 }).then((value) => value.id);`;
  const options = { target: 'es2022', module: 'nodenext', lib: ['es2024', 'esnext.disposable'] };
  expect(typeErrors('bare.mts', code, { ...options, types: [], skipLibCheck: true })).toBe('');
});

test('all entry points share one program: errors, the ambient identity and the state of tools', () => {
  const program = `
    const { createSemel, SemelError } = require('semel');
    (async () => {
      const { memoryStore } = await import('semel/memory');
      const { redisStore } = await import('semel/redis');
      const { guard } = await import('semel/ai-sdk');
      const { handoffToHeaders } = await import('semel/identity');
      const semel = createSemel({ store: memoryStore(), namespace: 'a-project' });
      const refused = await redisStore({ client: 1 }).open().catch((error) => error instanceof SemelError);
      let sent = 0;
      const tools = guard(semel, { mail: { inputSchema: {}, execute: () => (sent += 1) } },
        { mail: { effect: 'write-non-idempotent', per: 'turn' } });
      await semel.within({ conversation: 'c', turn: 'a' }, () => tools.mail.execute({ to: 'x' }, { toolCallId: '1', messages: [] }));
      await semel.within({ conversation: 'c', turn: 'a' }, () => tools.mail.execute({ to: 'x' }, { toolCallId: '1', messages: [] }));
      const carried = semel.within({ conversation: 'c', turn: 'a' }, () => Object.values(handoffToHeaders(semel.handoff())).length > 0);
      await semel.close();
      console.log(JSON.stringify({ refused, sent, carried }));
    })();`;
  expect(JSON.parse(run(program))).toEqual({ refused: true, sent: 1, carried: true });
});

test('a stack names functions and lines, and an uncaught error does not print a whole file', () => {
  write('throws.mjs', "import { createSemel } from 'semel';\ncreateSemel({ store: 'nonsense://here' });\n");
  const { status, stderr } = spawnSync(process.execPath, ['throws.mjs'], { cwd: project, encoding: 'utf8' });
  expect(status).toBe(1);
  expect(stderr).toMatch(/at (?:Object\.)?createSemel \(.*semel\/dist\/lib\/[\w-]+\.cjs:\d{3,}:\d+\)/);
  expect(Math.max(...stderr.split('\n').map((line) => line.length))).toBeLessThan(500);
});

test.each(['esm', 'cjs'] as const)('a program that semel was bundled into runs, as %s', async (format) => {
  const code = `
    import { createSemel } from 'semel';
    import { redisStore } from 'semel/redis';
    const semel = createSemel({ store: 'sqlite:${join(project, `${format}.db`)}', namespace: 'app' });
    semel.once('mail', { to: 'x' }, () => 'sent').then(async (sent) => {
      await semel.close();
      console.log(typeof redisStore, sent);
    });`;
  write('app.mjs', code);
  const elsewhere = mkdtempSync(join(tmpdir(), 'semel-bundled-'));
  onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }));
  const file = join(elsewhere, format === 'esm' ? 'app.mjs' : 'app.cjs');
  await build({
    cwd: project,
    input: 'app.mjs',
    platform: 'node',
    logLevel: 'silent',
    output: { file, format, codeSplitting: false },
  });
  const { stdout, stderr } = spawnSync(process.execPath, [file], { cwd: elsewhere, encoding: 'utf8' });
  expect([stdout, stderr]).toEqual(['function sent\n', '']);
});

/** What a program in the project prints. */
function run(program: string): string {
  write('program.cjs', program);
  return execFileSync(process.execPath, ['program.cjs'], { cwd: project, encoding: 'utf8' });
}

function typeErrors(file: string, code: string, options: object): string {
  write(file, code);
  mkdirSync(join(project, 'node_modules/@types'), { recursive: true });
  const types = join(project, 'node_modules/@types/node');
  rmSync(types, { force: true });
  symlinkSync(join(root, 'node_modules/@types/node'), types);
  const compilerOptions = {
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
    types: ['node'],
    ...options,
  };
  write('tsconfig.json', JSON.stringify({ compilerOptions, files: [file] }));
  return spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', '.'], { cwd: project, encoding: 'utf8' })
    .stdout;
}

function write(file: string, text: string): void {
  writeFileSync(join(project, file), text);
}
