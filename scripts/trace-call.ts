// npm run trace [-- --summary | --json]: counts the functions of src/ on the path of a first execution. V8 counts those
// that one warm call enters; the stack inside the driver, which the debugger follows through awaits and timers, has the
// steps to the claim. So there is no list to maintain, and nothing in src/ knows about it.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import {
  type Debugger,
  console as debuggerConsole,
  type Profiler,
  type Runtime,
  Session,
} from 'node:inspector';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StatementSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { createSemel } from '../src/index.ts';

const goal = { steps: 10, functions: 80 };
const warmUps = 50;
const sources = new URL('../src/', import.meta.url).href;

/** A function that was entered, by its place in the source. */
interface Entered {
  readonly name: string;
  readonly scriptId: string;
  readonly url: string;
  readonly startOffset: number;
  readonly endOffset: number;
}

interface Trace {
  /** From the tool to the claim's INSERT, outermost first. */
  readonly steps: readonly string[];
  /** Entered before that INSERT. */
  readonly before: readonly string[];
  /** Entered by the whole call; those that call no other function of src/ apart. */
  readonly functions: readonly string[];
  readonly leaves: readonly string[];
  /** Entered by a replay from the cache. */
  readonly replay: readonly string[];
}

const session = new Session();
session.connect();

/** A session on its own thread answers before `post` returns. */
function ask<T>(method: string, params: object = {}): T {
  let answer: unknown;
  let problem: unknown;
  const post = session.post.bind(session) as unknown as (
    method: string,
    params: object,
    then: (error: unknown, found: unknown) => void,
  ) => void;
  post(method, params, (error, found) => {
    problem = error;
    answer = found;
  });
  if (problem) throw new Error(`${method} was refused.`, { cause: problem });
  return answer as T;
}

/** The functions that were entered since this was last asked. */
function takeEntered(): readonly Entered[] {
  const entered = takeCounted();
  return entered.filter((each) => !isPartOfConstructor(each, entered));
}

/** V8 counts the fields of a class as a function of their own, beside the constructor that sets them. */
function isPartOfConstructor({ name, url, startOffset }: Entered, entered: readonly Entered[]): boolean {
  if (name !== '<instance_members_initializer>') return false;
  const [, className] =
    [
      ...read(url)
        .slice(0, startOffset)
        .matchAll(/^(?:export )?class (\w+)/gm),
    ].at(-1) ?? [];
  return entered.some((other) => other.url === url && other.name === className);
}

function takeCounted(): readonly Entered[] {
  const { result } = ask<Profiler.TakePreciseCoverageReturnType>('Profiler.takePreciseCoverage');
  return result.flatMap(({ scriptId, url, functions }) =>
    functions.flatMap(({ functionName, ranges: [range] }) => {
      if (!url.startsWith(sources) || range === undefined || range.count === 0) return [];
      const { startOffset, endOffset } = range;
      return [{ scriptId, url, startOffset, endOffset, name: functionName || '(anonymous)' }];
    }),
  );
}

const texts = new Map<string, string>();

/** Types are stripped without moving anything: the file on the disk is what runs. */
function read(url: string): string {
  const text = texts.get(url) ?? readFileSync(new URL(url), 'utf8');
  texts.set(url, text);
  return text;
}

function locate({ scriptId, url }: Entered, offset: number): Debugger.Location {
  const lines = read(url).slice(0, offset).split('\n');
  return { scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1)?.length ?? 0 };
}

/** The innermost of these functions at a place of the source. */
function findFunction(
  among: readonly Entered[],
  url: string,
  line: number,
  column: number,
): Entered | undefined {
  if (!url.startsWith(sources)) return undefined;
  const lines = read(url).split('\n').slice(0, line);
  const offset = lines.reduce((sum, each) => sum + each.length + 1, column);
  return among
    .filter((each) => each.url === url && each.startOffset <= offset && offset < each.endOffset)
    .toSorted((a, b) => b.startOffset - a.startOffset)[0];
}

function label(each: Entered): string {
  return `${each.url.slice(sources.length)}:${locate(each, each.startOffset).lineNumber + 1} ${each.name}`;
}

const labelAll = (all: readonly Entered[]) => [...new Set(all.map(label))].toSorted();

/** Runs `onInsert` at the first INSERT that the driver is given during `work`. */
async function watchInsert(onInsert: () => void, work: () => Promise<unknown>): Promise<void> {
  const { run } = StatementSync.prototype;
  let isSeen = false;
  StatementSync.prototype.run = function (this: StatementSync, ...values: Parameters<typeof run>) {
    if (!isSeen && /^\s*INSERT/i.test(this.sourceSQL)) {
      isSeen = true;
      onInsert();
    }
    return run.apply(this, values);
  } as typeof run;
  try {
    await work();
  } finally {
    StatementSync.prototype.run = run;
  }
}

/** The frames of src/ at this moment, followed through awaits and timers, innermost first. */
function asyncFrames(): readonly Runtime.CallFrame[] {
  const frames: Runtime.CallFrame[] = [];
  const listen = ({ params }: { params: Runtime.ConsoleAPICalledEventDataType }) => {
    for (let stack = params.stackTrace; stack !== undefined; stack = stack.parent)
      frames.push(...stack.callFrames.filter(({ url }) => url.startsWith(sources)));
  };
  session.once('Runtime.consoleAPICalled', listen);
  debuggerConsole.trace();
  return frames;
}

/** Which of these functions call another one: a breakpoint at every statement, whose condition looks at the stack. */
async function findCallers(
  entered: readonly Entered[],
  work: () => Promise<unknown>,
): Promise<ReadonlySet<Entered>> {
  const callers = new Set<string>();
  const look = () => {
    const { stackTraceLimit, prepareStackTrace } = Error;
    Error.stackTraceLimit = 6;
    Error.prepareStackTrace = (_, sites) => sites;
    const sites = new Error().stack as unknown as NodeJS.CallSite[];
    Object.assign(Error, { stackTraceLimit, prepareStackTrace });
    const [, caller] = sites.filter((site) => !site.isAsync() && site.getFileName()?.startsWith(sources));
    if (caller !== undefined)
      callers.add(`${caller.getFileName()} ${caller.getLineNumber()} ${caller.getColumnNumber()}`);
    return false;
  };
  Object.assign(globalThis, { lookAtStack: look });
  const places = entered.flatMap(
    (each) =>
      ask<Debugger.GetPossibleBreakpointsReturnType>('Debugger.getPossibleBreakpoints', {
        start: locate(each, each.startOffset),
        end: locate(each, each.endOffset),
      }).locations,
  );
  const unique = new Map(
    places.map((each) => [`${each.scriptId} ${each.lineNumber} ${each.columnNumber}`, each]),
  );
  for (const location of unique.values())
    ask('Debugger.setBreakpoint', { location, condition: 'lookAtStack()' });
  await work();
  ask('Debugger.disable');
  const found = [...callers].map((text) => {
    const [url = '', line, column] = text.split(' ');
    return findFunction(entered, url, Number(line) - 1, Number(column) - 1);
  });
  return new Set(found.filter((each) => each !== undefined));
}

async function trace(store: string): Promise<Trace> {
  const semel = createSemel({
    store,
    namespace: 'trace',
    cache: { maxAge: '1h' },
    onWarning: () => undefined,
  });
  const send = semel.tool({
    name: 'email.send',
    effect: 'write-non-idempotent',
    per: 'ever',
    identity: ['id'],
    run: async ({ id }: { id: string; text: string }) => ({ id }),
  });
  let count = 0;
  const first = () => send({ id: `lead-${++count}`, text: 'hello' });
  for (const method of ['Profiler.enable', 'Runtime.enable', 'Debugger.enable']) ask(method);
  ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  try {
    for (let n = 0; n < warmUps; n += 1) await first();

    takeEntered();
    await first();
    const functions = takeEntered();

    let before: readonly Entered[] = [];
    await watchInsert(() => (before = takeEntered()), first);
    takeEntered();

    ask('Debugger.setAsyncCallStackDepth', { maxDepth: 64 });
    let frames: readonly Runtime.CallFrame[] = [];
    await watchInsert(() => (frames = asyncFrames()), first);
    ask('Debugger.setAsyncCallStackDepth', { maxDepth: 0 });
    const path = frames.map((each) => findFunction(functions, each.url, each.lineNumber, each.columnNumber));

    takeEntered();
    await send({ id: `lead-${count}`, text: 'hello' });
    const replay = takeEntered();

    const callers = await findCallers(functions, first);
    return {
      steps: [...new Set(path.filter((each) => each !== undefined).map(label))].toReversed(),
      before: labelAll(before),
      functions: labelAll(functions),
      leaves: labelAll(functions.filter((each) => !callers.has(each))),
      replay: labelAll(replay),
    };
  } finally {
    ask('Profiler.disable');
    await semel.close();
  }
}

const countFiles = (functions: readonly string[]) =>
  new Set(functions.map((each) => each.split(':')[0])).size;

function describe(name: string, { steps, before, functions, leaves, replay }: Trace): string {
  const lines = [`${name}: ${functions.length} functions in ${countFiles(functions)} files`];
  if (steps.length > 0)
    lines.push(
      `steps from the call to the claim (${before.length} functions are entered before it, in ${countFiles(before)} files):`,
      ...steps.map((each, n) => `  ${String(n + 1).padStart(2)} ${each}`),
    );
  lines.push(
    'functions that call others:',
    ...functions.filter((each) => !leaves.includes(each)).map((each) => `  ${each}`),
    `helpers that call none (${leaves.length}):`,
    ...leaves.map((each) => `  ${each}`),
    `a replay from the cache enters ${replay.length} functions:`,
    ...replay.map((each) => `  ${each}`),
  );
  return `${lines.join('\n')}\n\n`;
}

const { values } = parseArgs({ options: { json: { type: 'boolean' }, summary: { type: 'boolean' } } });
const folder = mkdtempSync(join(tmpdir(), 'semel-trace-'));
try {
  const sqlite = await trace(`sqlite:${join(folder, 'ledger.db')}`);
  const memory = await trace('memory:');
  if (values.json) process.stdout.write(`${JSON.stringify({ goal, sqlite, memory }, undefined, 2)}\n`);
  else {
    if (!values.summary) process.stdout.write(`${describe('SQLite', sqlite)}${describe('Memory', memory)}`);
    process.stdout.write(
      `trace: ${sqlite.steps.length} steps to the claim, ${sqlite.functions.length} functions per first execution (goal ${goal.steps}, ${goal.functions})\n`,
    );
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
