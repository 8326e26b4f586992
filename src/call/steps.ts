// The steps of an attempt: effects with a record each, inside a call that has one of its own. A step is a guarded call like any
// other, named by the outer call, so a later attempt replays the steps that landed and goes on after them.

import { type Classified, describeThrown } from '../core/contract/classify.ts';
import type { Duration } from '../core/contract/duration.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import type { Seen } from '../core/contract/one-request.ts';
import type { Provider } from '../core/contract/provider.ts';
import { type ErrorCode, isSemelError, SemelError } from '../core/errors.ts';
import { PartialSuccess } from '../core/signals.ts';
import type { Verification, VerifyContext } from '../core/verification.ts';
import { Watch } from '../core/watched.ts';
import type { AttemptContext } from './sending/context.ts';

export interface StepOptions<Value = unknown> {
  /** Asks the target whether the step landed, where an attempt died in it. */
  readonly verify?: (step: unknown, ctx: VerifyContext) => Verification<Value> | Promise<Verification<Value>>;
  /** The target honours a key. */
  readonly provider?: Provider;
  /** What an error of the step's own request means: `oneRequest`, a table by code, or a function. */
  readonly classify?:
    | ((error: unknown, seen: Seen) => Classified | undefined)
    | Readonly<Record<string, Exclude<Classified, Error>>>;
  /** All requests of the step go through `ctx.fetch`. */
  readonly via?: 'fetch';
  readonly timeout?: Duration | 'none';
  readonly lease?: Duration;
  /** What to do if this step landed and the rest does not: "Refund the charge in Stripe." */
  readonly correctiveAction?: string;
  /** Its earlier names: in a call that is half done, a step that landed under one of them is not repeated. */
  readonly was?: string | readonly string[];
}

export type StepWork<Value = unknown> = (ctx: AttemptContext<undefined>) => Value | Promise<Value>;

export type StepFate = 'landed' | 'not landed' | 'in doubt';

export interface StepCall {
  /** The contract of the outer call. */
  readonly contract: string;
  /** Its earlier names: steps that landed under them are not repeated. */
  readonly was: readonly string[];
  /** The step's name, then its earlier ones. */
  readonly names: readonly [string, ...string[]];
  /** Names the outer call: the same for all attempts at its intent. */
  readonly of: string;
  readonly options: Omit<StepOptions, 'correctiveAction' | 'was'>;
  readonly work: StepWork;
}

/** Makes a step's call; undefined where there is no ledger for it. */
export type RunStep = (step: StepCall) => Promise<unknown>;

interface Taken {
  readonly name: string;
  readonly names: readonly string[];
  readonly correctiveAction: string | undefined;
  fate: StepFate;
}

/** The steps of one try, with what earlier tries of its attempt know of theirs. */
export class Steps {
  readonly #taken: Taken[] = [];
  readonly #earlier: readonly Taken[];
  readonly #mayHaveLanded: boolean;
  readonly #running = new Set<Promise<unknown>>();
  readonly #watch = new Watch();

  /** `mayHaveLanded`: an earlier attempt may have made steps that this one knows nothing of yet. */
  constructor(mayHaveLanded: boolean, earlier?: Steps) {
    this.#mayHaveLanded = mayHaveLanded;
    this.#earlier = earlier === undefined ? [] : earlier.#known;
  }

  get fates(): readonly StepFate[] {
    return this.#known.map(({ fate }) => fate);
  }

  /** Also the steps that this try did not reach: they are as an earlier try left them. */
  get #known(): readonly Taken[] {
    const isTaken = ({ name }: Taken) => this.#taken.some((each) => each.names.includes(name));
    return [...this.#earlier.filter((each) => !isTaken(each)), ...this.#taken];
  }

  take(
    run: RunStep,
    outer: Pick<StepCall, 'contract' | 'was' | 'of'>,
    name: string,
    ...rest: unknown[]
  ): Promise<unknown> {
    const step = this.#take(run, outer, name, ...rest);
    const end = () => this.#running.delete(step);
    this.#running.add(step);
    step.then(end, end);
    return step;
  }

  /** For `run`; `finish` reports an error that `run` does not wait for. */
  watch(taking: Promise<unknown>): Promise<unknown> {
    return this.#watch.of(taking);
  }

  /** Waits for steps that `run` did not wait for: their call is not done before they are. Throws what they threw. */
  async finish(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
    await this.#watch.finish();
  }

  async #take(
    run: RunStep,
    outer: Pick<StepCall, 'contract' | 'was' | 'of'>,
    name: string,
    ...rest: unknown[]
  ) {
    const [given, work] = (rest.length === 1 ? [{}, rest[0]] : rest) as [StepOptions, StepWork];
    checkStep(outer.contract, name, work);
    checkKnown(`The step ${name} of ${outer.contract}`, given, optionNames, 'INVALID_ARGS');
    const { correctiveAction, was = [], ...options } = given;
    const names = [name, ...[was].flat()] as const;
    for (const each of names) checkStep(outer.contract, each, work);
    const earlier = this.#taken.find((step) => step.names.some((each) => names.includes(each)));
    // Its record would answer, and the second effect would silently not happen.
    if (earlier !== undefined && earlier.fate !== 'not landed') throw repeatedStepError(outer.contract, name);
    // Until its end is known: `run` may throw while it goes on.
    const taken: Taken = earlier ?? { name, names, correctiveAction, fate: 'in doubt' };
    taken.fate = 'in doubt';
    if (earlier === undefined) this.#taken.push(taken);
    try {
      const value = await run({ ...outer, names, options, work });
      taken.fate = 'landed';
      return value;
    } catch (error) {
      taken.fate = judgeStep(error) ?? this.#fateBefore(names);
      throw error;
    }
  }

  /** The fate of a step that this try did not start. */
  #fateBefore(names: readonly string[]): StepFate {
    const known = this.#earlier.find((each) => names.includes(each.name));
    return known?.fate ?? (this.#mayHaveLanded ? 'in doubt' : 'not landed');
  }

  /** What to throw instead, if some steps landed and none is in doubt. */
  toPartialSuccess(thrown: unknown): PartialSuccess | undefined {
    const known = this.#known;
    const landed = known.filter(({ fate }) => fate === 'landed');
    if (landed.length === 0 || known.some(({ fate }) => fate === 'in doubt')) return undefined;
    const left = known.filter(({ fate }) => fate === 'not landed').map(({ name }) => name);
    const names = landed.map(({ name }) => name);
    const actions = landed.flatMap(({ correctiveAction }) => correctiveAction ?? []);
    const rest =
      left.length === 0 ? 'this attempt did not start the rest' : `${left.join(', ')} did not land`;
    // A step's own error says that it did not land, and why in its cause.
    const reason = isSemelError(thrown) && thrown.cause !== undefined ? thrown.cause : thrown;
    const why = describeThrown(reason).replace(/\.$/, '');
    const message = [`${names.join(', ')} landed, ${rest}: ${why}`, ...actions].join('. ');
    const next = actions.length === 0 ? undefined : actions.join(' ');
    return new PartialSuccess({ landed: names, notLanded: left }, message, thrown, next);
  }
}

const optionNames = fieldNames<StepOptions>({
  verify: true,
  provider: true,
  classify: true,
  via: true,
  timeout: true,
  lease: true,
  correctiveAction: true,
  was: true,
});

/** Undefined: it was not started now, which says nothing about earlier attempts at it. */
function judgeStep(error: unknown): StepFate | undefined {
  if (!isSemelError(error)) return 'in doubt';
  if (error.code === 'RESULT_OMITTED') return 'landed';
  // Somebody gave it up without knowing.
  if (error.evidence?.givenUp === true) return 'in doubt';
  if (error.receipt?.executed === true && error.code === 'STORE_UNAVAILABLE') return 'in doubt';
  if (uncertain.has(error.code)) return 'in doubt';
  return decided.has(error.code) ? 'not landed' : undefined;
}

/** Its record says so, for all attempts at it. */
const decided: ReadonlySet<ErrorCode> = new Set(['NOT_LANDED', 'FAILED', 'POISON'] as const);

/** Also while another attempt is at it: it may land. */
const uncertain: ReadonlySet<ErrorCode> = new Set([
  'IN_DOUBT',
  'IN_FLIGHT',
  'LEASE_LOST',
  'PARTIAL_SUCCESS',
  'UNRECORDED',
  'EXPIRED',
] as const);

function checkStep(contract: string, name: unknown, work: unknown): void {
  const refuse = (path: string, what: string, next: string): never => {
    throw new SemelError('INVALID_ARGS', `${contract}: ${what}.`, { path, next });
  };
  if (typeof name !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name) || name.length > 64)
    refuse(
      'step',
      'a step has no usable name',
      "Name it with letters, digits and dashes: ctx.step('charge', …).",
    );
  if (`${contract}.${name}`.length > 64)
    refuse(
      'step',
      `${contract}.${name} has more than 64 characters`,
      'Give the step or the tool a shorter name.',
    );
  if (typeof work !== 'function')
    refuse(
      'work',
      `the step ${name} needs a function as its last argument`,
      "Write ctx.step('charge', async (ctx) => …).",
    );
}

function repeatedStepError(contract: string, name: string): SemelError {
  return new SemelError('INVALID_ARGS', `${contract}: two steps of one run are called ${name}.`, {
    path: 'step',
    next: 'Give each step its own name, for example with the id of what it is about.',
  });
}

export function noStepsError(contract: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `${contract}: \`ctx.step\` is not available here.`, {
    path: 'step',
    next: 'Use it in a tool whose class is remembered, outside of `inTransaction`: the steps need records of their own.',
  });
}

export function outsideStepError(): SemelError {
  return new SemelError('CONTRACT_INVALID', '`ctx.fetch` was called to send something outside of a step.', {
    path: 'via',
    next: "Its contract says via: 'steps': send it inside `ctx.step`, with the `ctx` that the step gets.",
  });
}
