// Does the effect of this tool land once, whatever happens around it? Plays each row on the user's own tool and
// store, and says which one failed and what to change. Knows no test runner: it returns, or it throws.

import { randomBytes } from 'node:crypto';
import { clonerOf, type ToolFunction } from '../../semel/index.ts';
import { fixFor } from './fix.ts';
import { judge } from './judge.ts';
import type { LandsOnceOptions } from './options.ts';
import { type Row, rows } from './rows.ts';
import { openScene, type Scene, type Subject } from './scene.ts';
import { LandsOnceError, type LandsOnceRow, type LandsOnceTable, tableOf } from './table.ts';
import type { Definition } from './watch.ts';

/** One tool of a framework, as `guard` of its adapter returned it. */
type FrameworkTool = object & { readonly try?: never };

/**
 * Plays retries, races, lost replies and a crash on `tool`, which is what `semel.tool` returned.
 * `args` may be a function: it is called for each call, as in your own code.
 */
export function landsOnce<Input, Value>(
  tool: ToolFunction<Input, Value>,
  args: Input | (() => Input),
  options: LandsOnceOptions<Input>,
): Promise<LandsOnceTable>;
/** The same on one tool that `guard` returned; `args` are what the model would write. */
export function landsOnce<Input>(
  tool: FrameworkTool,
  args: Input | (() => Input),
  options: LandsOnceOptions<Input>,
): Promise<LandsOnceTable>;
export async function landsOnce<Input>(
  tool: object,
  args: Input | (() => Input),
  options: LandsOnceOptions<Input>,
): Promise<LandsOnceTable> {
  const subject = subjectOf(tool, args, options as LandsOnceOptions<unknown>);
  const done: LandsOnceRow[] = [];
  const known = { counts: false, usesFetch: false, hopeless: false, honoursKey: false };
  for (const row of rows)
    if (row.appliesTo?.(subject.contract) ?? true) done.push(await play(row, subject, known));
  const table = tableOf(subject.contract.name, done);
  if (done.some(({ status }) => status === 'failed')) throw new LandsOnceError(table);
  return table;
}

/** What earlier rows have shown. */
interface Known {
  /** `effects` sees what `run` does. */
  counts: boolean;
  usesFetch: boolean;
  /** Not one call gets as far as `run`. */
  hopeless: boolean;
  /** The provider took a request with the same key for one, soon after the first. */
  honoursKey: boolean;
}

async function play(row: Row, subject: Subject, known: Known): Promise<LandsOnceRow> {
  const scene = await openScene(subject, row.name);
  try {
    const lacking = known.hopeless ? 'an earlier row says why' : row.lacks?.(scene, known.usesFetch);
    if (lacking !== undefined) return notTried(row, lacking);
    await row.play(scene);
    const effects = await scene.growth();
    const judgement = judge(row, scene, effects, known.counts);
    learn(known, scene, effects);
    const fix =
      judgement.status === 'failed' ? await fixFor(row, scene, judgement.complaint, known) : undefined;
    if (
      judgement.status === 'failed' &&
      (judgement.complaint === 'refused' || judgement.complaint === 'threw')
    )
      known.hopeless ||= !known.counts;
    const { status, verdict } = judgement;
    return { name: row.name, status, calls: scene.calls.length, effects, verdict, fix };
  } finally {
    await scene.end();
  }
}

function learn(known: Known, { watch, subject }: Scene, effects: number): void {
  known.counts ||= effects > 0;
  known.usesFetch ||= watch.requests.some(({ unsafe }) => unsafe);
  known.honoursKey ||= subject.contract.provider !== undefined && watch.runs.length > 1 && effects === 1;
}

function notTried({ name }: Row, lacking: string): LandsOnceRow {
  return {
    name,
    status: 'not tried',
    calls: 0,
    effects: 0,
    verdict: `not tried: ${lacking}`,
    fix: undefined,
  };
}

function subjectOf<Input>(
  tool: object,
  args: Input | (() => Input),
  options: LandsOnceOptions<unknown>,
): Subject {
  const rebuild = clonerOf(tool);
  if (rebuild === undefined)
    throw new TypeError(
      'landsOnce tests what `semel.tool` returned, or one tool that `guard` returned; this is something else, or a read.',
    );
  if (typeof options?.effects !== 'function')
    throw new TypeError('landsOnce needs `effects`: a function that counts what has landed.');
  let definition: Definition | undefined;
  let at = Date.now();
  const { tool: clone } = rebuild({
    definition(given) {
      definition = given;
      return given;
    },
    clock(clock) {
      at = clock.now();
      return clock;
    },
  });
  return {
    rebuild,
    contract: clone.contract,
    definition: definition as Definition,
    makeArgs: typeof args === 'function' ? (args as () => Input) : () => args,
    madePerCall: typeof args === 'function' || typeof options.call === 'function',
    options,
    nonce: randomBytes(4).toString('hex'),
    at,
  };
}
