// One row's stage: instances of the tool, an identity that no other row shares, and a log of every call.

import type { Result } from '../../call/index.ts';
import type { Contract } from '../../core/contract/contract.ts';
import type { CallOptions, CloneTool } from '../../semel/index.ts';
import { type Instance, type MortalInstance, startInstance, startMortal } from './instance.ts';
import type { LandsOnceOptions } from './options.ts';
import { type Line, listen, onLine } from './replies.ts';
import { snapshotOf } from './same.ts';
import { type Definition, type Faults, newWatch, type Watch, watched } from './watch.ts';

/** What is tested, the same for all rows. */
export interface Subject {
  readonly rebuild: CloneTool;
  readonly contract: Contract;
  readonly definition: Definition;
  /** The args as the user's code makes them, anew for each call. */
  readonly makeArgs: () => unknown;
  /** They may differ from call to call: they, or the options, come from a function. */
  readonly madePerCall: boolean;
  readonly options: LandsOnceOptions<unknown>;
  /** Unique per run of landsOnce: a persistent ledger would remember the last test. */
  readonly nonce: string;
  /** The instant that selects calendar periods, so that midnight cannot split a row. */
  readonly at: number;
}

export interface Played {
  readonly args: unknown;
  readonly options: CallOptions;
  /** Empty where the call was refused before it had one. */
  readonly key: string;
  /** Undefined: the process died before it could answer. */
  readonly result: Result | undefined;
  /** The value as it was when it was returned. */
  readonly value: unknown;
}

export interface Scene {
  readonly subject: Subject;
  readonly row: string;
  readonly calls: readonly Played[];
  readonly watch: Watch;
  readonly faults: Faults;
  readonly line: Line;
  instance(): Instance;
  mortal(): MortalInstance;
  call(instance: Instance | MortalInstance, args?: unknown): Promise<Played>;
  /** From here on `growth` counts anew. */
  mark(): Promise<void>;
  /** How many effects landed since the scene began, or since the mark. */
  growth(): Promise<number>;
  end(): Promise<void>;
}

export async function openScene(subject: Subject, row: string): Promise<Scene> {
  const { options, rebuild } = subject;
  const watch = newWatch();
  const faults: Faults = {};
  const line: Line = { requests: watch.requests, loseNext: false };
  const calls: Played[] = [];
  const instances: Instance[] = [];
  let before = await count(options.effects);
  const unlisten = listen();
  const kept = <T extends Instance>(instance: T): T => {
    instances.push(instance);
    return instance;
  };
  const definition = (given: Definition) => watched(given, watch, options.effects, faults);

  return {
    subject,
    row,
    calls,
    watch,
    faults,
    line,
    instance: () => kept(startInstance(rebuild, definition)),
    mortal: () => kept(startMortal(rebuild, definition)),
    async call(instance, args = subject.makeArgs()) {
      const callOptions = identityFor(subject, row, args);
      const answer = onLine(line, () => instance.tool.try(args, callOptions));
      const end = await ('died' in instance ? Promise.race([answer, instance.died]) : answer);
      const result = typeof end === 'string' ? undefined : end;
      const played = {
        args,
        options: callOptions,
        key: typeof end === 'string' ? end : end.receipt.key,
        result,
        value: result?.ok ? snapshotOf(result.value) : undefined,
      };
      calls.push(played);
      return played;
    },
    async mark() {
      before = await count(options.effects);
    },
    growth: async () => (await count(options.effects)) - before,
    async end() {
      unlisten();
      await leaveNoDoubt(calls, instances.at(-1));
      await Promise.all(instances.map((instance) => instance.end()));
    },
  };
}

/**
 * `again` is part of every kind of key, derived or the caller's own, in every period: with it each row has an
 * intent of its own, and everything else stays as the caller has it.
 */
function identityFor({ options, contract, nonce, at }: Subject, row: string, args: unknown): CallOptions {
  const given = typeof options.call === 'function' ? options.call(args) : (options.call ?? {});
  const { per } = contract;
  const needed =
    per === 'turn'
      ? { conversation: `landsOnce ${nonce}`, turn: 'the only one' }
      : per === 'conversation' || per === 'run'
        ? { [per]: `landsOnce ${nonce}` }
        : typeof per === 'object'
          ? { at }
          : {};
  const why = `landsOnce ${nonce}: ${row}`;
  return { ...needed, ...given, again: given.again === undefined ? why : `${given.again} (${why})` };
}

/** The keys that the calls had; one, where they were taken for one intent. */
export function keysOf(calls: readonly Played[]): ReadonlySet<string> {
  return new Set(calls.map(({ key }) => key).filter((key) => key !== ''));
}

/** Closes what the faults left open, and says so in the history: nobody should investigate a doubt that a test made. */
async function leaveNoDoubt(calls: readonly Played[], instance: Instance | undefined): Promise<void> {
  for (const key of instance === undefined ? [] : keysOf(calls)) {
    const record = await instance?.semel.records.get(key).catch(() => undefined);
    if (!record?.inDoubt) continue;
    await instance?.semel.doubts
      .resolve(record.ref, { abandon: 'made by landsOnce' }, { by: 'landsOnce' })
      .catch(() => undefined);
  }
}

async function count(effects: () => number | Promise<number>): Promise<number> {
  const landed = await effects();
  if (typeof landed === 'number' && Number.isFinite(landed)) return landed;
  throw new TypeError(`landsOnce: \`effects\` must give a number, not ${String(landed)}.`);
}
