// The Python client (clients/python) with a real server and real kills. Its tests are unittest files; these start them.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { makeVectors } from './vectors.ts';

const client = join(import.meta.dirname, '../../clients/python');
const folder = mkdtempSync(join(tmpdir(), 'semel-python-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function works(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

const isNew = 'import sys, ssl; sys.exit(sys.version_info < (3, 10))';
const python = ['python3', '/usr/bin/python3'].find((each) => works(each, '-c', isNew));
if (python === undefined)
  console.warn('SKIPPED: the Python client was not tested, there is no python3 >= 3.10');
if (process.platform !== 'linux')
  console.warn('SKIPPED: most tests of the Python client need /proc, which is of Linux only');
const mypy = ['mypy', '/usr/bin/mypy'].find((each) => works(each, '--version'));
if (mypy === undefined)
  console.warn('SKIPPED: the types of the Python client were not checked, there is no mypy');

async function run(command: string, args: readonly string[], env: Record<string, string> = {}) {
  const built = process.env.SEMEL_BUILT_COMMAND as string;
  const child = spawn(command, args, {
    cwd: client,
    env: {
      ...process.env,
      SEMEL_COMMAND: `'${process.execPath}' '${built}'`,
      TEST_NODE: process.execPath,
      TEST_DOOR: join(dirname(built), '../index.js'),
      PYTHONDONTWRITEBYTECODE: '1',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  child.stdout.on('data', (part) => (text += part));
  child.stderr.on('data', (part) => (text += part));
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, text };
}

const unittest = async (name: string, env?: Record<string, string>) => {
  const { code, text } = await run(python as string, ['-m', 'unittest', `tests.${name}`], env);
  expect(code, text).toBe(0);
  return text;
};

/** A program of a user, as a type checker sees it. */
const typed = `
import asyncio
import semel

@semel.tool("refund", effect="irreversible", per="ever", identity=["payment"])
def refund(payment: str, reason: str = "") -> str:
    return payment

@semel.tool("mail", per="ever")
async def mail(to: int) -> bool:
    return True

@semel.job("digest", per="day")
def digest(job: semel.JobContext) -> int:
    return job.step("count", lambda: 7)

@semel.job("digest.async", per="day")
async def digest_async(job: semel.AsyncJobContext) -> int:
    async def count() -> int:
        return 7
    return await job.step("count", count)

async def main() -> None:
    sent: bool = await mail(7)
    outcome: semel.Outcome[bool] = await mail.attempt(to=7)
    done: int | None = (await digest_async.run()).value
    text: str = await semel.handoff_async()
    print(sent, outcome.ok, done, text)

paid: str = refund("p1", reason="broken")
again: str = refund.with_options(again="asked twice")("p1")
receipt: semel.Receipt | None = refund.attempt("p1").receipt
number: int | None = digest.run().value
welcome: int = semel.once("welcome", {"user": 7}, lambda: 7)
asyncio.run(main())
`;
const mistakes = [
  'refund(7)',
  'refund(reason="broken")',
  'number_paid: int = refund("p1")',
  'semel.tool("x", effect="wrong")',
  'digest.run(at="today")',
];

describe.skipIf(python === undefined)('the Python client', () => {
  test('keeps headers, ledgers and leases apart', () => unittest('test_walls'));
  test('reaches servers by TCP, TLS and unix sockets', () => unittest('test_places'));
  test('guards sync and async functions', () => unittest('test_tools'));
  test('gives back what is interrupted before it starts, and reports what has landed', () =>
    unittest('test_interrupts'));
  test('leaves no doubt behind where an answer is late or the server has no room', () =>
    unittest('test_answers'));
  test('sends each value as one JSON value, or refuses it', () => unittest('test_encoding'));
  test('repeats nothing when it or a TypeScript program is killed', () => unittest('test_kills.Kills'));
  test('starts one server, and another where that is gone', () => unittest('test_kills.Servers'));
  test('runs jobs by their slots and steps, in turn with TypeScript', () => unittest('test_jobs'));

  test('has the keys of TypeScript', async () => {
    const file = join(client, 'tests/vectors.json');
    const own = await makeVectors(1, 300);
    if (process.env.UPDATE_VECTORS === '1')
      writeFileSync(file, `[\n${own.map((each) => JSON.stringify(each)).join(',\n')}\n]\n`);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(own);
    const more = join(folder, 'vectors.json');
    writeFileSync(more, JSON.stringify(await makeVectors(2, 10_000)));
    await unittest('test_vectors', { VECTORS: more });
  });

  test('fits agent frameworks and task queues', () => unittest('test_adapters'));
  test('fits the packages themselves, where they can be imported', async () => {
    for (const line of (await unittest('test_real')).match(/^SKIPPED: .*/gm) ?? []) console.warn(line);
  });

  test('does what its guide prints', async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/guides/python.md'), 'utf8');
    const programs = [...page.matchAll(/^```python\n(.*?)^```$/gms)].map(([, program]) => program as string);
    expect(programs.length).toBeGreaterThan(1);
    for (const program of programs) {
      const prints = [...program.matchAll(/^# prints: (.*)$/gm)].map(([, text]) => `${text}\n`).join('');
      const state = mkdtempSync(join(folder, 'guide-'));
      const env = { XDG_STATE_HOME: state, XDG_RUNTIME_DIR: '', SEMEL_IDLE: '1s', PYTHONPATH: client };
      const { code, text } = await run(python as string, ['-c', program], env);
      expect(code, text).toBe(0);
      expect(text).toBe(prints);
    }
  });

  test('is one wheel without dependencies, which a program imports and a type checker reads', async () => {
    const built = await run(python as string, ['build_wheel.py', join(folder, 'dist')]);
    expect(built.code, built.text).toBe(0);
    const wheel = built.text.trim();
    expect(wheel).toMatch(/semel-\d+\.\d+\.\d+-py3-none-any\.whl$/);
    const place = join(folder, 'venv');
    const made = await run(python as string, ['-m', 'venv', place]);
    const code =
      'import semel, semel.adapters, importlib.resources as r; print(semel.__file__, r.files(semel).joinpath("py.typed").is_file())';
    if (made.code === 0) {
      const pip = await run(join(place, 'bin/pip'), ['install', '--no-index', '--no-deps', wheel]);
      expect(pip.code, pip.text).toBe(0);
      const said = await run(join(place, 'bin/python'), ['-I', '-c', code]);
      expect(said.text).toContain('site-packages/semel/__init__.py True');
      if (mypy === undefined) return;
      const check = async (program: string) => {
        writeFileSync(join(folder, 'program.py'), program);
        const options = ['--strict', '--python-executable', join(place, 'bin/python')];
        const files = ['--cache-dir', join(folder, 'mypy-user'), join(folder, 'program.py')];
        return run(mypy, [...options, ...files], { PYTHONPATH: '' });
      };
      const right = await check(typed);
      expect(right.code, right.text).toBe(0);
      const wrong = await check(`${typed}${mistakes.join('\n')}\n`);
      expect(wrong.text.match(/error:/g), wrong.text).toHaveLength(mistakes.length);
    } else {
      console.warn('SKIPPED: pip did not install the wheel of the Python client, there is no venv');
      const said = await run(python as string, [
        '-c',
        `import sys; sys.path[0] = ${JSON.stringify(wheel)}; ${code}`,
      ]);
      expect(said.text).toContain('True');
    }
  });

  test.skipIf(mypy === undefined)('is clean under mypy --strict', async () => {
    const cache = join(folder, 'mypy');
    const options = ['--strict', '--python-version', '3.10', '--cache-dir', cache, 'semel'];
    // It would check what is imported from there too.
    const { code, text } = await run(mypy as string, options, { PYTHONPATH: '' });
    expect(code, text).toBe(0);
  });
});
