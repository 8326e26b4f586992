// The public object: tools, `once`, identity, records and doubts.

import {
  type Ambient,
  type AttemptContext,
  type Call,
  createPipeline,
  handoff,
  type RunStep,
  within,
} from '../call/index.ts';
import { systemClock, systemRandom } from '../core/clock.ts';
import { describeThrown } from '../core/contract/classify.ts';
import type { ContractDefaults, IfBusy } from '../core/contract/contract.ts';
import type { Duration } from '../core/contract/duration.ts';
import { durationMs } from '../core/contract/duration.ts';
import type { StandardSchema } from '../core/contract/standard-schema.ts';
import { SemelError } from '../core/errors.ts';
import { checkText } from '../core/text.ts';
import { escapeInvisible } from '../core/visible.ts';
import { createLedger, type EventName, eventNames, type SemelEvents } from '../ledger/index.ts';
import { lifeOf } from '../store/process-life.ts';
import type { StoreFacts } from '../store/store.ts';
import { type Begun, begin } from './begin.ts';
import { createCallFactory } from './calls/call-factory.ts';
import { noOptions } from './calls/call-identity.ts';
import { findEarlier } from './calls/earlier-call.ts';
import { describeKey, type KeyInfo } from './calls/key-info.ts';
import type {
  ArgsOf,
  CallOptions,
  Given,
  InputOf,
  Storable,
  ToolDefinition,
  ToolFunction,
} from './definition.ts';
import { createHousekeeping } from './housekeeping.ts';
import {
  checkOnceId,
  checkOnceOptions,
  checkOptions,
  type Limits,
  type OnceOptions,
  type SemelOptions,
  splitOnceOptions,
} from './options.ts';
import { commandOptions } from './place/command-options.ts';
import { loginName, userName } from './place/login.ts';
import { resolveMode } from './place/mode.ts';
import { resolveNamespace } from './place/namespace.ts';
import { recordRoot, rootsNamespace, sharedWarning } from './place/roots.ts';
import { resolveStore } from './place/store-choice.ts';
import { createRecords, type Doubts, type Records } from './records/records.ts';
import { type SweepOptions, type SweepReport, sweep } from './sweep.ts';
import {
  type Clone,
  type CloneChanges,
  type Engine,
  engineKey,
  knownKey,
  overrideStore,
} from './tool-internals.ts';
import {
  type AnyDefinition,
  type CallEntry,
  createStepTool,
  createToolbox,
  type KnownTool,
} from './toolbox.ts';

export interface Semel extends AsyncDisposable {
  readonly namespace: string;
  /** Runs `effect` once for this name and id; later calls get the same value. */
  once<Value>(
    name: string,
    id: unknown,
    effect: (ctx: AttemptContext<undefined>) => Value | Promise<Value>,
  ): Promise<Awaited<Value>>;
  once<Value, Id = unknown>(
    name: string,
    id: Id,
    options: OnceOptions<NoInfer<Id>, NoInfer<Awaited<Value>>>,
    effect: (ctx: AttemptContext<undefined>) => Value | Promise<Value>,
  ): Promise<Awaited<Value>>;
  /** A function whose effect lands once. */
  tool<
    Args,
    Value,
    Prepared = undefined,
    Busy extends IfBusy = 'wait',
    Schema extends StandardSchema | undefined = undefined,
  >(
    definition: ToolDefinition<ArgsOf<Schema, Args>, Value, Prepared, Busy, Schema> & Storable<Value>,
  ): ToolFunction<InputOf<Schema, Args>, Given<Value, Busy>>;
  /** Starts a call; settle its attempt yourself. */
  begin<Input, Value>(
    tool: ToolFunction<Input, Value>,
    args: Input,
    options?: CallOptions,
  ): Promise<Begun<Value>>;
  /** The key that a call would have, and what it is made of. Claims nothing. */
  keyOf<Input>(tool: ToolFunction<Input, unknown>, args: Input, options?: CallOptions): Promise<KeyInfo>;
  /** Calls made inside `work` belong to this conversation, turn or run. Also takes a hand-off. */
  within<T>(identity: Ambient | string, work: () => T): T;
  /** The current identity, for another process or agent. Contains no secrets. */
  handoff(): string;
  readonly records: Records;
  readonly doubts: Doubts & {
    /** Tries to settle records in doubt with this process's tools. */
    sweep(options?: SweepOptions): Promise<SweepReport>;
  };
  on<Name extends EventName>(name: Name, listener: (event: SemelEvents[Name]) => void): () => void;
  /** Opens the store and returns facts about it. Calls open it by themselves. */
  open(): Promise<StoreFacts>;
  /** Waits up to `grace` for running calls, settles the others by what is known of them, and closes the store. */
  close(options?: { readonly grace?: Duration }): Promise<void>;
}

/** Stop after 10,000 warnings; nobody reads further. */
const maxWarnings = 10_000;

export function createSemel(options: SemelOptions = {}): Semel {
  checkOptions(options);
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const mode = resolveMode(options.mode);
  const { name: namespace, root } = resolveNamespace(options.namespace);
  const warn =
    options.onWarning ?? ((message: string) => process.emitWarning(escapeInvisible(message), 'SemelWarning'));
  const limits: Limits = {
    resultBytes: 1_048_576,
    argsBytes: 1_048_576,
    storedArgsBytes: 65_536,
    depth: 64,
    ...options.limits,
  };
  const cache = options.cache === false ? { maxBytes: 0 } : (options.cache ?? {});
  const store = resolveStore(options.store, clock, random);
  const ledger = createLedger({
    store,
    clock,
    random,
    cache: {
      maxBytes: cache.maxBytes ?? 16_777_216,
      maxAgeMs: durationMs(('maxAge' in cache ? cache.maxAge : undefined) ?? '5s', 'cache.maxAge'),
    },
  });
  const pipelineOptions = {
    clock,
    random,
    ...lifeOf(checkText('owner', options.owner), () => facts?.isLocal === true),
    maxResultBytes: limits.resultBytes,
    mayRunUnguarded: options.unguarded ?? true,
    warn: warnDuringCall,
  };
  const pipeline = createPipeline({ ledger, ...pipelineOptions, runStep });
  const defaults: ContractDefaults = {
    ...mode.defaults,
    ...options.defaults,
    ...(mode.mode === undefined ? {} : { mode: mode.mode }),
    ...(options.onDoubt === undefined ? {} : { onDoubt: options.onDoubt }),
  };
  const source = {
    namespace,
    address: () => facts && commandOptions(namespace, facts),
    permissions: options.permissions ?? [],
    now: () => clock.now(),
    warnOnce,
    limits: {
      maxArgsBytes: limits.argsBytes,
      maxStoredArgsBytes: limits.storedArgsBytes,
      maxDepth: limits.depth,
    },
  };
  const calls = createCallFactory(source);
  const { records, doubts } = createRecords({
    ledger,
    namespace,
    clock,
    random,
    user: userName(),
    login: loginName(),
    maxResultBytes: limits.resultBytes,
    warnOnce,
  });
  const issuedWarnings = new Set<string>();
  const startingCalls = new Set<Promise<unknown>>();
  const housekeeping = createHousekeeping(ledger, clock, random);
  let facts: StoreFacts | undefined;
  let opened: Promise<StoreFacts> | undefined;
  let closed: Promise<void> | undefined;

  function runStep(step: Parameters<RunStep>[0]) {
    const tool = createStepTool(toolbox, step);
    return toolbox.invoke({ tool, schema: undefined, isExternal: false }, { of: step.of }, noOptions);
  }

  /** A failing logger must not keep an effect from being recorded. */
  function warnDuringCall(message: string): void {
    try {
      warnOnce(message);
    } catch (error) {
      process.emitWarning(`\`onWarning\` of semel threw: ${escapeInvisible(describeThrown(error))}`);
    }
  }

  function warnOnce(message: string): void {
    if (issuedWarnings.has(message) || issuedWarnings.size >= maxWarnings) return;
    issuedWarnings.add(message);
    warn(message);
  }

  function open(): Promise<StoreFacts> {
    opened ??= ledger
      .facts()
      .then(checkRoot)
      .then(
        (found) => {
          facts = hideAddress(found);
          for (const sentence of [found.forgets, found.clockProblem, found.warning])
            if (sentence !== undefined) warnOnce(sentence);
          if (options.prune ?? true) housekeeping.start();
          return facts;
        },
        (error: unknown) => {
          opened = undefined;
          throw error;
        },
      );
    return opened;
  }

  /** Warns if another application uses the same unnamed namespace. A ledger in memory is never shared. */
  async function checkRoot(found: StoreFacts): Promise<StoreFacts> {
    if (root === undefined || found.kind === 'memory') return found;
    const book = createSemel({
      store: overrideStore(store, { close: async () => undefined }),
      namespace: rootsNamespace(namespace),
      mode: 'enforce',
      clock,
      random,
      prune: false,
      cache: false,
      onWarning: () => undefined,
    });
    try {
      const others = await recordRoot(book, root);
      if (others.length > 0) warnOnce(sharedWarning(namespace, root, others));
    } catch (error) {
      // Tried once: this must not refuse or delay calls.
      warnOnce(
        `semel could not check whether other applications use the namespace ${JSON.stringify(namespace)} (${(error as Error).message}). Name it: createSemel({ namespace: '…' }).`,
      );
    }
    return found;
  }

  if (mode.announcement !== undefined) warnOnce(mode.announcement);
  const entry: CallEntry = { run: pipeline.run };
  const toolbox = createToolbox({
    defaults,
    isDevelopment: mode.isDevelopment,
    warnOnce,
    prepare,
    entry,
    clone,
  });

  function clone(definition: AnyDefinition, change: CloneChanges): Clone {
    const other = createSemel({
      ...options,
      namespace,
      store: overrideStore(change.store?.(store) ?? store, { close: async () => undefined }),
      clock: change.clock?.(clock) ?? clock,
      // A rehearsal must behave as in production.
      mode: mode.mode === 'observe' ? 'observe' : 'enforce',
      onWarning: () => undefined,
    });
    const same = change.definition?.(definition) ?? definition;
    return { semel: other, tool: other.tool(same as ToolDefinition<unknown, unknown>) };
  }

  /** Makes a call that the pipeline can run. Returns a promise only if it waits for the schema or the store. */
  function prepare(
    { tool, schema }: KnownTool,
    args: unknown,
    callOptions: CallOptions,
  ): Call | Promise<Call> {
    const made = calls.make(tool, schema, args, callOptions);
    if (made instanceof Promise) return trackStart(made.then(beforeUse));
    const ready = beforeUse(made);
    return ready instanceof Promise ? trackStart(ready) : ready;
  }

  /** `close` also waits for calls that have not reached the pipeline yet. */
  function trackStart<T>(step: Promise<T>): Promise<T> {
    const end = () => void startingCalls.delete(step);
    startingCalls.add(step);
    step.then(end, end);
    return step;
  }

  /** Returns a promise only at the first use, when it opens the store. */
  function beforeUse(call: Call): Call | Promise<Call> {
    const { tool, args, identity } = call;
    const { contract } = tool;
    toolbox.warnOfIdentity(tool, args);
    if (identity.weak) {
      warnOnce(
        `${contract.name}: the turn was guessed; pass one to \`semel.within\` so that retries are recognised.`,
      );
    }
    if (contract.effect === 'read' || contract.mode === 'off' || opened !== undefined) return call;
    // If the store cannot be opened, the call itself fails with that error.
    return open().then(
      () => call,
      () => call,
    );
  }

  function recordedTool(fn: Pick<ToolFunction<unknown, unknown>, 'contract'>): KnownTool {
    const name = fn?.contract?.name ?? 'This';
    const known = toolbox.find(name);
    const problem =
      known === undefined
        ? 'was not created by this Semel instance'
        : fn.contract.effect === 'read'
          ? 'is a read, which is not recorded'
          : undefined;
    if (known !== undefined && problem === undefined) return known;
    throw new SemelError('CONTRACT_INVALID', `${name} ${problem}.`, {
      path: 'tool',
      next: 'Pass what `semel.tool` returned, with an effect that is recorded.',
    });
  }

  async function beginCall<Args, Value>(
    fn: ToolFunction<Args, Value>,
    args: Args,
    callOptions = noOptions,
    endsWithProcess = false,
  ): Promise<Begun<Value>> {
    const known = recordedTool(fn);
    known.isExternal = true;
    const made = await calls.make(known.tool, known.schema, args, callOptions);
    return begin(pipeline, clock, await beforeUse(made), endsWithProcess);
  }

  const semel: Semel = {
    namespace,
    async once(name: string, id: unknown, ...rest: unknown[]) {
      const [onceOptions, effect] = rest.length === 1 ? [{}, rest[0]] : rest;
      if (typeof effect !== 'function') {
        throw new SemelError(
          'INVALID_ARGS',
          `once(${JSON.stringify(name)}, …) needs a function as its last argument.`,
          {
            path: 'effect',
            next: 'The options come before it: once(name, id, options, async (ctx) => …).',
          },
        );
      }
      // Observe mode also runs what it would refuse; the receipt says so.
      if (mode.mode !== 'observe') {
        checkOnceOptions(onceOptions as OnceOptions);
        if (rest.length === 1) checkOnceId(name, id);
      }
      const [contract, callOptions] = splitOnceOptions(onceOptions as OnceOptions);
      const tool = toolbox.oneLiner(name, contract, effect as (ctx: AttemptContext<undefined>) => unknown);
      return (await toolbox.invoke({ tool, schema: undefined, isExternal: false }, id, callOptions)) as never;
    },
    tool: toolbox.define as unknown as Semel['tool'],
    begin: (fn, args, callOptions) => beginCall(fn, args, callOptions),
    async keyOf(fn, args, callOptions = noOptions) {
      const { tool, schema } = recordedTool(fn);
      return describeKey(await calls.make(tool, schema, args, callOptions));
    },
    within,
    handoff,
    records,
    doubts: {
      ...doubts,
      sweep: (sweepOptions = {}) => sweep(ledger, pipeline, namespace, toolbox.find, sweepOptions, warnOnce),
    },
    on(name, listener) {
      if (eventNames.includes(name)) return ledger.events.on(name, listener);
      throw new SemelError('INVALID_ARGS', `There is no event \`${name}\`.`, {
        path: 'name',
        next: `Use one of ${eventNames.join(', ')}.`,
      });
    },
    open,
    async close({ grace = '10s' } = {}) {
      const graceMs = durationMs(grace, 'grace');
      const closing = () => pipeline.close(graceMs);
      closed ??= (startingCalls.size === 0 ? closing() : Promise.allSettled(startingCalls).then(closing))
        .then(() => housekeeping.finish())
        .then(() => ledger.close());
      return closed;
    },
    [Symbol.asyncDispose]: () => semel.close(),
  };
  const engine: Engine = {
    namespace,
    store,
    pipeline,
    clock,
    random,
    warn: warnOnce,
    open,
    async makeCall(fn, args, callOptions, onTerms) {
      const named = recordedTool(fn);
      // Two tools of one name share their records, but each has a `run` of its own.
      const { tool, schema } = (fn as { [knownKey]?: KnownTool })[knownKey] ?? named;
      const call = await calls.make(onTerms?.(tool) ?? tool, schema, args, callOptions);
      toolbox.warnOfIdentity(tool, call.args);
      return call;
    },
    beginHere: (fn, args, callOptions) => beginCall(fn, args, callOptions, true),
    async findEarlier(fn, args, callOptions) {
      const { tool } = recordedTool(fn);
      await open().catch(() => undefined);
      return findEarlier(calls, pipeline, tool, args, callOptions);
    },
    async endIfDead(key) {
      const record = await ledger.read(namespace, key);
      return record !== undefined && pipeline.endIfDead(record);
    },
    find: toolbox.find,
    listTools: toolbox.list,
    wrapCalls(wrap) {
      const { run, runWith, runAfter } = pipeline;
      pipeline.run = (call) => wrap(call, () => run(call));
      pipeline.runWith = async (call, body) => wrap(call, () => runWith(call, body));
      pipeline.runAfter = async (call, before) => wrap(call, () => runAfter(call, before));
      entry.run = pipeline.run;
    },
    pipelineOn(other) {
      const book = createLedger({ store: other, clock, random, cache: { maxBytes: 0, maxAgeMs: 0 } });
      return {
        ledger: book,
        pipeline: createPipeline({ ledger: book, ...pipelineOptions }),
      };
    },
  };
  return Object.defineProperty(semel, engineKey, { value: engine });
}

/** The address may hold a password: it stays readable, but does not show when the facts are logged. */
function hideAddress(found: StoreFacts): StoreFacts {
  return Object.defineProperty({ ...found }, 'address', { value: found.address, enumerable: false });
}
