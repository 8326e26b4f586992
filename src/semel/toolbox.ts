// The tools of one Semel instance. Turns definitions into functions, and refuses two contracts under one name.

import {
  type AttemptContext,
  type Call,
  emptyReceipt,
  type KeyUse,
  newKeyUse,
  type Result,
  type RunStep,
  type Tool,
  threwError,
  withoutUndefined,
} from '../call/index.ts';
import { listErrorCodes } from '../core/contract/classify.ts';
import { type ContractDefaults, defineContract, type IfBusy } from '../core/contract/contract.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import type { StandardSchema } from '../core/contract/standard-schema.ts';
import { isSemelError, SemelError, withReceipt } from '../core/errors.ts';
import { isGeneratorFunction } from '../core/plain.ts';
import { noOptions } from './calls/call-identity.ts';
import { createContractWarnings } from './contract-warnings.ts';
import type { CallOptions, ClassifyTable, ToolDefinition, ToolFunction } from './definition.ts';
import type { OnceTerms } from './options.ts';
import { releaseOwnMistakes } from './place/mode.ts';
import {
  type Clone,
  type CloneChanges,
  type CloneTool,
  cloneKey,
  externalKey,
  forgetKey,
  knownKey,
  warningKey,
} from './tool-internals.ts';

/** A tool and its schema. */
export interface KnownTool {
  readonly tool: Tool;
  readonly schema: StandardSchema | undefined;
  /** A framework, or the caller of `begin`, executes it: `run` alone may do nothing. */
  isExternal: boolean;
}

export interface Toolbox {
  define(definition: AnyDefinition): ToolFunction<unknown, unknown>;
  /** Makes one call. */
  invoke(known: KnownTool, args: unknown, options: CallOptions): Promise<unknown>;
  /** A tool for `once`: its effect is a new closure at each call. */
  oneLiner(
    name: string,
    options: OnceTerms & Pick<AnyDefinition, 'was'>,
    effect: (ctx: AttemptContext<undefined>) => unknown,
  ): Tool;
  /** By its current or an earlier name. Does not find one-liners: their effect ends with the call. */
  find(name: string): KnownTool | undefined;
  /** Every tool, by its current name. */
  list(): readonly string[];
  /** Warns once of what looks wrong with the identity of these args. */
  warnOfIdentity(tool: Tool, args: unknown): void;
}

export type AnyDefinition = ToolDefinition<unknown, unknown, unknown, IfBusy, StandardSchema | undefined>;

/** Where calls enter the pipeline. Not constant: tracing wraps it, and the usual call pays nothing for that. */
export interface CallEntry {
  run: (call: Call) => Result | Promise<Result>;
}

export interface ToolboxSource {
  readonly defaults: ContractDefaults;
  readonly isDevelopment: boolean;
  readonly warnOnce: (message: string) => void;
  /** Returns a promise only if it has to wait, like `run`. */
  readonly prepare: (known: KnownTool, args: unknown, options: CallOptions) => Call | Promise<Call>;
  readonly entry: CallEntry;
  readonly clone: (definition: AnyDefinition, change: CloneChanges) => Clone;
}

export function createToolbox({
  defaults,
  isDevelopment,
  warnOnce,
  prepare,
  entry,
  clone,
}: ToolboxSource): Toolbox {
  const shapes = new Map<string, string>();
  const tools = new Map<string, KnownTool>();
  const warnings = createContractWarnings(warnOnce);
  const oneLiners = new Map<string, Tool['contract']>();
  const keyUses = new WeakMap<Tool['contract'], KeyUse>();
  const classifierOf = (given: Tool['classify'] | ClassifyTable) =>
    isDevelopment ? releaseOwnMistakes(compileClassifier(given)) : compileClassifier(given);

  /** `mayDiffer`: fields that do not change how either contract treats a record. */
  function claimName(contract: Tool['contract'], mayDiffer: readonly string[] = []): void {
    const { name } = contract;
    const shape = describeShape(contract);
    const known = shapes.get(name) ?? shape;
    const found = known === shape ? [] : findDifferences(known, shape);
    const different = found.filter((field) => !mayDiffer.includes(field)).map((field) => `\`${field}\``);
    if (different.length > 0) {
      const next = 'Give one of them another name, or both the same terms.';
      throw new SemelError(
        'CONTRACT_INVALID',
        `${name} is defined twice, with different contracts (${different.join(', ')}).`,
        { path: 'name', next },
      );
    }
    shapes.set(name, shape);
  }

  /** A program with a new name per id would fill the memory within months. */
  function forgetOldest(): void {
    if (oneLiners.size <= maxOneLiners) return;
    warnOnce(
      `\`once\` was called with more than ${maxOneLiners} names. A name stands for a kind of effect: put the id in the second argument.`,
    );
    const [shape, { name }] = oneLiners.entries().next().value as [string, Tool['contract']];
    oneLiners.delete(shape);
    if (!tools.has(name)) forgetName(name);
  }

  function keyUseOf(contract: Tool['contract']): KeyUse {
    const known = keyUses.get(contract) ?? newKeyUse();
    keyUses.set(contract, known);
    return known;
  }

  function forgetName(name: string): void {
    shapes.delete(name);
    warnings.forget(name);
  }

  /** Returns the value or throws the error with its receipt. A read's own error passes unchanged. */
  function invoke(known: KnownTool, args: unknown, options: CallOptions = noOptions): Promise<unknown> {
    const { name } = known.tool.contract;
    let calling: Result | Promise<Result>;
    try {
      const call = prepare(known, args, options);
      calling = pace(call instanceof Promise ? call.then(entry.run) : entry.run(call));
    } catch (error) {
      calling = pace(Promise.reject(error));
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
        isExternal: tools.get(contract.name)?.isExternal === true,
        tool: {
          contract,
          run: definition.run as Tool['run'],
          prepare: definition.prepare as Tool['prepare'],
          verify: definition.verify as Tool['verify'],
          classify: classifierOf(definition.classify),
          onReplay: definition.onReplay as Tool['onReplay'],
          keyUse: newKeyUse(),
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
          return withErrorReceipt(
            await pace(call instanceof Promise ? call.then(entry.run) : entry.run(call)),
          );
        } catch (error) {
          const receipt = emptyReceipt(contract.name);
          return pace({
            ok: false,
            error: withReceipt(isSemelError(error) ? error : threwError(contract, error), receipt),
            receipt,
          });
        }
      };
      Object.defineProperty(guarded, 'name', { value: contract.name });
      const again: CloneTool = (change) => clone(definition, change);
      Object.defineProperty(guarded, cloneKey, { value: again });
      Object.defineProperty(guarded, warningKey, { value: warnOnce });
      const forget = () => {
        if (tools.get(contract.name) !== known) return;
        tools.delete(contract.name);
        forgetName(contract.name);
      };
      Object.defineProperty(guarded, forgetKey, { value: forget });
      const markExternal = () => {
        known.isExternal = true;
      };
      Object.defineProperty(guarded, externalKey, { value: markExternal });
      Object.defineProperty(guarded, knownKey, { value: known });
      const { description, input } = definition;
      return Object.assign(guarded, { try: attempt, contract, description, input });
    },

    oneLiner(name, options, effect) {
      if (isGeneratorFunction(effect) && defaults.mode !== 'observe')
        throw new SemelError('INVALID_ARGS', `once(${JSON.stringify(name)}, …): the effect is a generator.`, {
          path: 'effect',
          next: notAGenerator,
        });
      const { verify, classify, ...terms } = withoutUndefined(options);
      const hasVerify = verify !== undefined;
      // Only the functions of a one-liner are new at each call; its contract is reused.
      const shape = `${name}\0${hasVerify}${JSON.stringify(terms)}`;
      const known = oneLiners.get(shape);
      // Two providers may differ in their functions, which the shape does not show.
      const contract = known?.provider === terms.provider && known !== undefined ? known : defineOnce();
      return {
        contract,
        run: (_args, ctx) => effect(ctx as AttemptContext<undefined>),
        verify: verify as Tool['verify'],
        classify: classifierOf(classify),
        isOneLiner: true,
        keyUse: keyUseOf(contract),
      };

      function defineOnce(): Tool['contract'] {
        const definition = { per: 'ever', ...terms, name, effect: 'write-non-idempotent' } as const;
        const made = defineContract(definition, { hasVerify, hasPrepare: false }, defaults);
        checkParts({ ...definition, verify, classify, run: effect } as AnyDefinition, made);
        if (made.rerunWithinMs !== null && made.fields.content.length > 0)
          throw new SemelError('CONTRACT_INVALID', `${name}: \`once\` cannot send the first wording again.`, {
            path: 'content',
            next: 'Define a tool: its `run` gets the args of the first attempt. Or leave out `content` or `provider`.',
          });
        // The runs of a job are not all remembered for the same time.
        claimName(made, ['window', 'failureWindow']);
        oneLiners.set(shape, made);
        forgetOldest();
        return made;
      }
    },

    find(name) {
      const isEarlierName = ({ tool }: KnownTool) => tool.contract.was.some((form) => form.name === name);
      return tools.get(name) ?? [...tools.values()].find(isEarlierName);
    },
    list: () => [...tools.keys()],
    warnOfIdentity: ({ contract }, args) => warnings.ofIdentity(contract, args),
  };
}

/** A step is a one-liner, named after its tool. Whose call the tool is decides who gets its steps. */
export function createStepTool(
  { oneLiner }: Pick<Toolbox, 'oneLiner'>,
  { contract, was, names, options, work }: Parameters<RunStep>[0],
): Tool {
  const name = `${contract}.${names[0]}`;
  const forms = [contract, ...was].flatMap((outer) => names.map((each) => ({ name: `${outer}.${each}` })));
  // With a longer name there was none.
  const earlier = forms.filter((form) => form.name !== name && form.name.length <= 64);
  return oneLiner(name, { ...options, share: true, was: earlier }, work);
}

const maxOneLiners = 1_000;

/** Captured now: a test may fake timers later and never advance them. */
const yieldToLoop = setImmediate;
let syncAnswers = 0;
const maxSyncAnswers = 100;

/**
 * Yields to the event loop now and then: a program that calls in a loop gets cached answers without ever waiting, and would
 * starve its own timers, such as heartbeats.
 */
function pace(calling: Result | Promise<Result>): Result | Promise<Result> {
  syncAnswers += 1;
  if (syncAnswers < maxSyncAnswers) return calling;
  syncAnswers = 0;
  // A rejection before the next turn would be unhandled and end the process.
  if (calling instanceof Promise) calling.catch(() => undefined);
  return new Promise((resolve) => yieldToLoop(() => resolve(calling)));
}

async function valueLater(name: string, calling: Promise<Result>): Promise<unknown> {
  let result: Result;
  try {
    result = withErrorReceipt(await calling);
  } catch (error) {
    throw withEmptyReceipt(name, error);
  }
  if (result.ok) return result.value;
  throw result.error;
}

function withEmptyReceipt(name: string, error: unknown): unknown {
  return isSemelError(error) && error.receipt === undefined ? withReceipt(error, emptyReceipt(name)) : error;
}

function withErrorReceipt(result: Result): Result {
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
  strict: true,
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

/** Checks for programs without types. */
function checkParts(definition: AnyDefinition, { effect, mode }: Tool['contract']): void {
  const refuse = (path: string, what: string, next: string): never => {
    throw new SemelError('CONTRACT_INVALID', `${definition.name}: \`${path}\` ${what}.`, { path, next });
  };
  const { run, input, classify } = definition;
  if (typeof run !== 'function') refuse('run', 'is missing', 'Give the tool a `run`.');
  for (const part of ['prepare', 'verify', 'onReplay'] as const) {
    const value: unknown = definition[part];
    if (value !== undefined && typeof value !== 'function')
      refuse(part, 'is not a function', `Write ${part}: (…) => ….`);
  }
  // A read may stream, because it is not recorded. An observed tool runs as it did before.
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
      'is not a Standard Schema',
      'Pass a schema made with zod, valibot, arktype or another library that supports it.',
    );
}

/** What two definitions of one name must agree on. */
function describeShape({ provider, normalize, ...plain }: Tool['contract']): string {
  return JSON.stringify({
    ...plain,
    provider: provider?.name,
    normalize: Object.keys(normalize),
    timeoutMs: String(plain.timeoutMs),
  });
}

function findDifferences(one: string, other: string): readonly string[] {
  const [a, b] = [JSON.parse(one), JSON.parse(other)] as Record<string, unknown>[];
  return Object.keys({ ...a, ...b })
    .filter((field) => JSON.stringify(a?.[field]) !== JSON.stringify(b?.[field]))
    .map((field) => field.replace(/Ms$/, ''));
}

function compileClassifier(classify: Tool['classify'] | ClassifyTable): Tool['classify'] {
  if (typeof classify !== 'object') return classify;
  return (error) => {
    const code = listErrorCodes(error).find((each) => Object.hasOwn(classify, each));
    return code === undefined ? undefined : classify[code];
  };
}
