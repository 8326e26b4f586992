// The public object: tools, one-liners, identity, and the ledger's doors.

import { hostname } from 'node:os';
import { type AttemptContext, type Call, createPipeline } from '../call/index.ts';
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
import type { StoreFacts } from '../store/store.ts';
import { type Begun, begin } from './begin.ts';
import { type Ambient, handoff, within } from './calls/ambient.ts';
import { noOptions } from './calls/asker.ts';
import { createCalls } from './calls/call-of.ts';
import { type KeyInfo, keyInfoOf } from './calls/key-info.ts';
import type {
  CallOptions,
  Given,
  SchemaTool,
  SchemaToolDefinition,
  Storable,
  ToolDefinition,
  ToolFunction,
} from './definition.ts';
import { createHousekeeping } from './housekeeping.ts';
import {
  checkOnceOptions,
  checkOptions,
  type Limits,
  type OnceOptions,
  type SemelOptions,
} from './options.ts';
import { commandOptions } from './place/command-options.ts';
import { loginName, userName } from './place/login.ts';
import { namespaceFor } from './place/namespace.ts';
import { otherRoots, rootsIn, sharedWarning } from './place/roots.ts';
import { storeOf } from './place/store-of.ts';
import { playedBy, type Rebuilding, type Sibling } from './rebuild.ts';
import { createRecords, type Doubts, type Records } from './records/records.ts';
import { type SweepOptions, type SweepReport, sweep } from './sweep.ts';
import { type AnyDefinition, createToolbox, type KnownTool, type OneLinerOptions } from './toolbox.ts';

export interface Semel extends AsyncDisposable {
  readonly namespace: string;
  /** Runs `effect` once for this name and id; later calls get the same value. */
  once<Value>(
    name: string,
    id: unknown,
    effect: (ctx: AttemptContext<undefined>) => Value | Promise<Value>,
  ): Promise<Awaited<Value>>;
  once<Value>(
    name: string,
    id: unknown,
    options: OnceOptions,
    effect: (ctx: AttemptContext<undefined>) => Value | Promise<Value>,
  ): Promise<Awaited<Value>>;
  /** A function whose effect lands once. */
  tool<Schema extends StandardSchema, Value, Prepared = undefined, Busy extends IfBusy = 'wait'>(
    definition: SchemaToolDefinition<Schema, Value, Prepared, Busy> & Storable<Value>,
  ): SchemaTool<Schema, Value, Busy>;
  tool<Args, Value, Prepared = undefined, Busy extends IfBusy = 'wait'>(
    definition: ToolDefinition<Args, Value, Prepared, Busy> & Storable<Value>,
  ): ToolFunction<Args, Given<Value, Busy>>;
  /** The first half of a call; the attempt is settled by hand. */
  begin<Input, Value>(
    tool: ToolFunction<Input, Value>,
    args: Input,
    options?: CallOptions,
  ): Promise<Begun<Value>>;
  /** The key that a call would have, and what it is made of. Nothing is claimed. */
  keyOf<Input>(tool: ToolFunction<Input, unknown>, args: Input, options?: CallOptions): Promise<KeyInfo>;
  /** Calls made inside `work` belong to this conversation, turn or run. Takes a hand-off too. */
  within<T>(identity: Ambient | string, work: () => T): T;
  /** The identity of the code that runs now, for another process or agent. Holds no secrets. */
  handoff(): string;
  readonly records: Records;
  readonly doubts: Doubts & {
    /** Asks about what is in doubt, with the tools of this process. */
    sweep(options?: SweepOptions): Promise<SweepReport>;
  };
  on<Name extends EventName>(name: Name, listener: (event: SemelEvents[Name]) => void): () => void;
  /** Opens the store, and tells what is true of it. Calls open it by themselves. */
  open(): Promise<StoreFacts>;
  /** Lets running calls finish for `grace`, ends the others by what is known of them, closes the store. */
  close(options?: { readonly grace?: Duration }): Promise<void>;
}

/** Whoever did not read so many does not read more. */
const maxWarnings = 10_000;

export function createSemel(options: SemelOptions = {}): Semel {
  checkOptions(options);
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const { name: namespace, root } = namespaceFor(options.namespace);
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
  const store = storeOf(options.store, clock, random);
  const ledger = createLedger({
    store,
    clock,
    random,
    cache: {
      maxBytes: cache.maxBytes ?? 16_777_216,
      maxAgeMs: durationMs(('maxAge' in cache ? cache.maxAge : undefined) ?? '5s', 'cache.maxAge'),
    },
  });
  const pipeline = createPipeline({
    ledger,
    clock,
    random,
    owner: checkText('owner', options.owner) ?? `${hostname()}:${process.pid}`,
    maxResultBytes: limits.resultBytes,
    mayRunUnguarded: options.unguarded ?? true,
    warn: warnDuringCall,
  });
  const defaults: ContractDefaults = {
    ...options.defaults,
    ...(options.mode === undefined ? {} : { mode: options.mode }),
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
  const calls = createCalls(source);
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
  const said = new Set<string>();
  const startingNow = new Set<Promise<unknown>>();
  const housekeeping = createHousekeeping(ledger, clock, random);
  let facts: StoreFacts | undefined;
  let opened: Promise<StoreFacts> | undefined;
  let closed: Promise<void> | undefined;

  /** A logger that fails must not keep what was done from being recorded. */
  function warnDuringCall(message: string): void {
    try {
      warnOnce(message);
    } catch (error) {
      process.emitWarning(`\`onWarning\` of semel threw: ${escapeInvisible(describeThrown(error))}`);
    }
  }

  /** Warnings are said once: by the second time they are noise. */
  function warnOnce(message: string): void {
    if (said.has(message) || said.size >= maxWarnings) return;
    said.add(message);
    warn(message);
  }

  function open(): Promise<StoreFacts> {
    opened ??= ledger
      .facts()
      .then(noteRoot)
      .then(
        (found) => {
          facts = discreet(found);
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

  /** A namespace that nobody named keeps the applications that use it. A ledger in memory is this process's own. */
  async function noteRoot(found: StoreFacts): Promise<StoreFacts> {
    if (root === undefined || found.kind === 'memory') return found;
    const book = createSemel({
      store: playedBy(store, { close: async () => undefined }),
      namespace: rootsIn(namespace),
      clock,
      random,
      prune: false,
      cache: false,
      onWarning: () => undefined,
    });
    try {
      const others = await otherRoots(book, root);
      if (others.length > 0) warnOnce(sharedWarning(namespace, root, others));
    } catch (error) {
      // Asked once: no call is refused for it, or held up again.
      warnOnce(
        `Whether other applications use the namespace ${JSON.stringify(namespace)} could not be seen (${(error as Error).message}). Name it: createSemel({ namespace: '…' }).`,
      );
    }
    return found;
  }

  const toolbox = createToolbox({ defaults, warnOnce, prepare, run: pipeline.run, rebuild });

  function rebuild(definition: AnyDefinition, change: Rebuilding): Sibling {
    const other = createSemel({
      ...options,
      namespace,
      store: playedBy(change.store?.(store) ?? store, { close: async () => undefined }),
      clock: change.clock?.(clock) ?? clock,
      onWarning: () => undefined,
    });
    const same = change.definition?.(definition) ?? definition;
    return { semel: other, tool: other.tool(same as ToolDefinition<unknown, unknown>) };
  }

  /** The call that the pipeline can run; a promise only where the schema or the store has to be waited for. */
  function prepare(
    { tool, schema }: KnownTool,
    args: unknown,
    callOptions: CallOptions,
  ): Call | Promise<Call> {
    const made = calls.make(tool, schema, args, callOptions);
    if (made instanceof Promise) return starting(made.then(beforeUse));
    const ready = beforeUse(made);
    return ready instanceof Promise ? starting(ready) : ready;
  }

  /** Closing lets calls finish, also those that have not got as far as the pipeline. */
  function starting<T>(step: Promise<T>): Promise<T> {
    const end = () => void startingNow.delete(step);
    startingNow.add(step);
    step.then(end, end);
    return step;
  }

  /** A promise only at the first use. */
  function beforeUse(call: Call): Call | Promise<Call> {
    const { tool, args, identity } = call;
    const { contract } = tool;
    toolbox.warnOfIdentity(tool, args);
    if (identity.weak) {
      warnOnce(
        `${contract.name}: the turn was guessed; pass one to \`semel.within\` so that retries are recognised.`,
      );
    }
    if (contract.effect === 'read' || opened !== undefined) return call;
    // What is wrong with the store is told by the call itself, as its own error.
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
        ? 'is no tool of this semel'
        : fn.contract.effect === 'read'
          ? 'is a read, which is not recorded'
          : undefined;
    if (known !== undefined && problem === undefined) return known;
    throw new SemelError('CONTRACT_INVALID', `${name} ${problem}.`, {
      path: 'tool',
      next: 'Pass what `semel.tool` returned, with an effect that is recorded.',
    });
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
            next: 'Pass the effect.',
          },
        );
      }
      // Observing runs what it cannot guard; the call says what would have been refused.
      if (options.mode !== 'observe') checkOnceOptions(onceOptions as OnceOptions);
      const { per, window, failureWindow, lease, timeout, ifBusy, via, share, ...callOptions } =
        onceOptions as OnceOptions;
      const contract = { per, window, failureWindow, lease, timeout, ifBusy, via, share } as OneLinerOptions;
      const tool = toolbox.oneLiner(name, contract, effect as (ctx: AttemptContext<undefined>) => unknown);
      return (await toolbox.invoke({ tool, schema: undefined }, id, callOptions)) as never;
    },
    tool: toolbox.define as unknown as Semel['tool'],
    async begin(fn, args, callOptions = noOptions) {
      const { tool, schema } = recordedTool(fn);
      const made = await calls.make(tool, schema, args, callOptions);
      return begin(pipeline, clock, await beforeUse(made));
    },
    async keyOf(fn, args, callOptions = noOptions) {
      const { tool, schema } = recordedTool(fn);
      return keyInfoOf(await calls.make(tool, schema, args, callOptions));
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
      closed ??= (startingNow.size === 0 ? closing() : Promise.allSettled(startingNow).then(closing))
        .then(() => housekeeping.finish())
        .then(() => ledger.close());
      return closed;
    },
    [Symbol.asyncDispose]: () => semel.close(),
  };
  return semel;
}

/** An address may hold a password: it is there for whoever asks for it, and in no log that prints the facts. */
function discreet(found: StoreFacts): StoreFacts {
  return Object.defineProperty({ ...found }, 'address', { value: found.address, enumerable: false });
}
