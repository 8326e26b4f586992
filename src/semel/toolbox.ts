// The tools of one semel: definitions become functions, and one name stands for one contract.

import {
  type AttemptContext,
  type Call,
  describeError,
  emptyReceipt,
  type Result,
  type Tool,
} from '../call/index.ts';
import { listErrorCodes } from '../core/contract/classify.ts';
import { type ContractDefaults, defineContract, type IfBusy } from '../core/contract/contract.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import type { StandardSchema } from '../core/contract/standard-schema.ts';
import { isSemelError, SemelError, withReceipt } from '../core/errors.ts';
import { isGeneratorFunction } from '../core/plain.ts';
import { noOptions } from './calls/asker.ts';
import { createContractWarnings } from './contract-warnings.ts';
import type {
  CallOptions,
  ClassifyTable,
  SchemaToolDefinition,
  ToolDefinition,
  ToolFunction,
} from './definition.ts';
import { forgetKey } from './forget-tool.ts';
import { type Rebuild, type Rebuilding, rebuildKey, type Sibling } from './rebuild.ts';
import { warningKey } from './tool-warning.ts';

/** A tool, and what checks its args. */
export interface KnownTool {
  readonly tool: Tool;
  readonly schema: StandardSchema | undefined;
}

export interface Toolbox {
  define(definition: AnyDefinition): ToolFunction<unknown, unknown>;
  /** Makes one call. */
  invoke(known: KnownTool, args: unknown, options: CallOptions): Promise<unknown>;
  /** A tool whose effect is another closure at each call. */
  oneLiner(name: string, options: OneLinerOptions, effect: (ctx: AttemptContext<undefined>) => unknown): Tool;
  /** By its name, or by one that it had before. Not one-liners: their effect is gone with its call. */
  find(name: string): KnownTool | undefined;
  /** Says once what looks wrong with the identity of such calls. */
  warnOfIdentity(tool: Tool, args: unknown): void;
}

export type AnyDefinition =
  | ToolDefinition<unknown, unknown, unknown, IfBusy>
  | SchemaToolDefinition<StandardSchema, unknown, unknown, IfBusy>;

export type OneLinerOptions = Pick<
  AnyDefinition,
  'per' | 'window' | 'failureWindow' | 'lease' | 'timeout' | 'ifBusy' | 'via' | 'share'
>;

export interface ToolboxSource {
  readonly defaults: ContractDefaults;
  readonly warnOnce: (message: string) => void;
  /** A promise only where something has to be waited for, here as in `run`. */
  readonly prepare: (known: KnownTool, args: unknown, options: CallOptions) => Call | Promise<Call>;
  readonly run: (call: Call) => Result | Promise<Result>;
  readonly rebuild: (definition: AnyDefinition, change: Rebuilding) => Sibling;
}

export function createToolbox({ defaults, warnOnce, prepare, run, rebuild }: ToolboxSource): Toolbox {
  const shapes = new Map<string, string>();
  const tools = new Map<string, KnownTool>();
  const warnings = createContractWarnings(warnOnce);
  const oneLiners = new Map<string, Tool['contract']>();

  function claimName(contract: Tool['contract']): void {
    const { name } = contract;
    const shape = shapeOf(contract);
    const known = shapes.get(name) ?? shape;
    if (known !== shape) {
      const different = differenceOf(known, shape).map((field) => `\`${field}\``);
      const next = 'Give one of them another name, or both the same terms.';
      throw new SemelError(
        'CONTRACT_INVALID',
        `${name} is defined twice, with different contracts (${different.join(', ')}).`,
        { path: 'name', next },
      );
    }
    shapes.set(name, shape);
  }

  /** A name per id would fill the memory of a process that runs for months. */
  function forgetOldest(): void {
    if (oneLiners.size <= maxOneLiners) return;
    warnOnce(
      `\`once\` was called with more than ${maxOneLiners} names. A name stands for a kind of effect: put the id in the second argument.`,
    );
    const [shape, { name }] = oneLiners.entries().next().value as [string, Tool['contract']];
    oneLiners.delete(shape);
    if (!tools.has(name)) forgetName(name);
  }

  function forgetName(name: string): void {
    shapes.delete(name);
    warnings.forget(name);
  }

  /** The value, or the error with its receipt. What a read threw passes as it is. */
  function invoke(known: KnownTool, args: unknown, options: CallOptions = noOptions): Promise<unknown> {
    const { name } = known.tool.contract;
    let calling: Result | Promise<Result>;
    try {
      const call = prepare(known, args, options);
      calling = paced(call instanceof Promise ? call.then(run) : run(call));
    } catch (error) {
      calling = paced(Promise.reject(error));
    }
    if (calling instanceof Promise) return valueLater(name, calling);
    if (calling.ok) return Promise.resolve(calling.value);
    return Promise.reject(withReceipt(calling.error, calling.receipt));
  }

  return {
    invoke,
    define(definition) {
      const traits = {
        hasVerify: definition?.verify !== undefined,
        hasPrepare: definition?.prepare !== undefined,
      };
      if (typeof definition === 'object' && definition !== null) {
        const name = typeof definition.name === 'string' ? definition.name : 'A tool';
        checkKnown(name, definition, toolFields);
      }
      const contract = defineContract(definition, traits, defaults);
      checkParts(definition, contract);
      claimName(contract);
      if (typeof definition.classify === 'object') warnings.ofClassify(contract.name, definition.classify);
      const known: KnownTool = {
        schema: definition.input,
        tool: {
          contract,
          run: definition.run as Tool['run'],
          prepare: definition.prepare as Tool['prepare'],
          verify: definition.verify as Tool['verify'],
          classify: classifier(definition.classify),
          onReplay: definition.onReplay as Tool['onReplay'],
        },
      };
      const earlier = tools.get(contract.name)?.tool.run;
      if (earlier !== undefined && String(earlier) !== String(definition.run))
        warnOnce(
          `${contract.name} is defined twice, with another \`run\`: the two share their records, so that one replays what the other did.`,
        );
      tools.set(contract.name, known);
      if (contract.fields.identity !== undefined) warnings.ofIdentity(contract, undefined);
      warnings.ofTerms(contract);

      const guarded = invoke.bind(undefined, known);
      const attempt = async (args: unknown, options: CallOptions = noOptions): Promise<Result> => {
        try {
          const call = prepare(known, args, options);
          return told(await paced(call instanceof Promise ? call.then(run) : run(call)));
        } catch (error) {
          const receipt = emptyReceipt(contract.name);
          return paced({
            ok: false,
            error: withReceipt(asSemelError(contract.name, error), receipt),
            receipt,
          });
        }
      };
      Object.defineProperty(guarded, 'name', { value: contract.name });
      const again: Rebuild = (change) => rebuild(definition, change);
      Object.defineProperty(guarded, rebuildKey, { value: again });
      Object.defineProperty(guarded, warningKey, { value: warnOnce });
      const forget = () => {
        if (tools.get(contract.name) !== known) return;
        tools.delete(contract.name);
        forgetName(contract.name);
      };
      Object.defineProperty(guarded, forgetKey, { value: forget });
      const { description, input } = definition;
      return Object.assign(guarded, { try: attempt, contract, description, input });
    },

    oneLiner(name, options, effect) {
      if (isGeneratorFunction(effect) && defaults.mode !== 'observe')
        throw new SemelError('INVALID_ARGS', `once(${JSON.stringify(name)}, …): the effect is a generator.`, {
          path: 'effect',
          next: notAGenerator,
        });
      const run: Tool['run'] = (_args, ctx) => effect(ctx as AttemptContext<undefined>);
      // The contract of a one-liner is the same at each call: only its effect is new.
      const shape = `${name}\0${JSON.stringify(options)}`;
      const known = oneLiners.get(shape);
      if (known !== undefined) return { contract: known, run };
      const traits = { hasVerify: false, hasPrepare: false };
      const contract = defineContract(
        { per: 'ever', ...given(options), name, effect: 'write-non-idempotent' },
        traits,
        defaults,
      );
      claimName(contract);
      oneLiners.set(shape, contract);
      forgetOldest();
      return { contract, run };
    },

    find(name) {
      const isEarlierName = ({ tool }: KnownTool) => tool.contract.was.some((form) => form.name === name);
      return tools.get(name) ?? [...tools.values()].find(isEarlierName);
    },
    warnOfIdentity: ({ contract }, args) => warnings.ofIdentity(contract, args),
  };
}

const maxOneLiners = 1_000;

/** Taken now: a test may fake the timers later, and nobody would turn them. */
const nextTurn = setImmediate;
let answers = 0;
const answersAtOnce = 100;

/**
 * A program that asks again and again gets its answers without ever waiting for the outside, and would starve its own
 * timers: heartbeats, and the very call that it asks for.
 */
function paced(calling: Result | Promise<Result>): Result | Promise<Result> {
  answers += 1;
  if (answers < answersAtOnce) return calling;
  answers = 0;
  // Refused before that turn, it would be a rejection that nobody handles, and end the process.
  if (calling instanceof Promise) calling.catch(() => undefined);
  return new Promise((resolve) => nextTurn(() => resolve(calling)));
}

async function valueLater(name: string, calling: Promise<Result>): Promise<unknown> {
  let result: Result;
  try {
    result = told(await calling);
  } catch (error) {
    throw receipted(name, error);
  }
  if (result.ok) return result.value;
  throw result.error;
}

function receipted(name: string, error: unknown): unknown {
  return isSemelError(error) && error.receipt === undefined ? withReceipt(error, emptyReceipt(name)) : error;
}

function told(result: Result): Result {
  return result.ok ? result : { ...result, error: withReceipt(result.error, result.receipt) };
}

export const toolFields: ReadonlySet<string> = fieldNames<AnyDefinition>({
  name: true,
  version: true,
  description: true,
  effect: true,
  stakes: true,
  input: true,
  identity: true,
  content: true,
  volatile: true,
  normalize: true,
  per: true,
  window: true,
  failureWindow: true,
  weakWindow: true,
  lease: true,
  timeout: true,
  ifBusy: true,
  wait: true,
  retry: true,
  maxAttempts: true,
  provider: true,
  verify: true,
  verifyAfter: true,
  classify: true,
  via: true,
  prepare: true,
  dispatch: true,
  result: true,
  onReplay: true,
  redact: true,
  permissions: true,
  was: true,
  mode: true,
  onDoubt: true,
  weak: true,
  share: true,
  run: true,
});

const meanings: readonly string[] = ['notLanded', 'rejected', 'maybeLanded'];

const notAGenerator = 'Calling it runs nothing of its body. Write an async function that returns the result.';

/** What the compiler checks for those who have one. */
function checkParts(definition: AnyDefinition, { effect, mode }: Tool['contract']): void {
  const refuse = (path: string, what: string, next: string): never => {
    throw new SemelError('CONTRACT_INVALID', `${definition.name}: \`${path}\` ${what}.`, { path, next });
  };
  const { run, input, classify } = definition;
  if (typeof run !== 'function') refuse('run', 'is missing', 'Give the tool a `run`.');
  for (const part of ['prepare', 'verify', 'onReplay'] as const) {
    const given: unknown = definition[part];
    if (given !== undefined && typeof given !== 'function')
      refuse(part, 'is no function', `Write ${part}: (…) => ….`);
  }
  // A read may stream: nothing is recorded of it. And what is only observed runs as it did before.
  if (effect !== 'read' && mode === 'enforce')
    for (const part of ['run', 'prepare', 'verify', 'onReplay'] as const)
      if (isGeneratorFunction(definition[part])) refuse(part, 'is a generator', notAGenerator);
  if (classify !== undefined && typeof classify !== 'function' && typeof classify !== 'object')
    refuse('classify', 'is neither a function nor a table', "Write classify: { EAUTH: 'notLanded' }.");
  if (typeof classify === 'object')
    for (const [code, meaning] of Object.entries(classify))
      if (!meanings.includes(meaning as string))
        refuse(`classify.${code}`, `is ${JSON.stringify(meaning)}`, `Write one of ${meanings.join(', ')}.`);
  if (input !== undefined && typeof input?.['~standard']?.validate !== 'function')
    refuse(
      'input',
      'is no Standard Schema',
      'Pass a schema of zod, valibot, arktype or another that is one.',
    );
}

/** Options that were spelt out as undefined are options that were not given. */
function given<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}

/** What two definitions of one name must agree on. */
function shapeOf({ provider, normalize, ...plain }: Tool['contract']): string {
  return JSON.stringify({
    ...plain,
    provider: provider?.name,
    normalize: Object.keys(normalize),
    timeoutMs: String(plain.timeoutMs),
  });
}

/** The fields in which two shapes differ. */
function differenceOf(one: string, other: string): readonly string[] {
  const [a, b] = [JSON.parse(one), JSON.parse(other)] as Record<string, unknown>[];
  return Object.keys({ ...a, ...b })
    .filter((field) => JSON.stringify(a?.[field]) !== JSON.stringify(b?.[field]))
    .map((field) => field.replace(/Ms$/, ''));
}

function classifier(classify: Tool['classify'] | ClassifyTable): Tool['classify'] {
  if (typeof classify !== 'object') return classify;
  return (error) => {
    const code = listErrorCodes(error).find((each) => Object.hasOwn(classify, each));
    return code === undefined ? undefined : classify[code];
  };
}

function asSemelError(name: string, error: unknown): SemelError {
  if (isSemelError(error)) return error;
  return new SemelError('FAILED', `${name} threw: ${describeError(error)}.`, {
    cause: error,
    next: 'It was not recorded: call again if it is worth it.',
    retriable: true,
  });
}
