// The lines as tools: each makes one effect at the effect server, and lets somebody stand at its crash points.

import { randomUUID } from 'node:crypto';
import type { ContractDefinition } from '../../src/core/contract/contract.ts';
import type { Per } from '../../src/core/contract/period.ts';
import type { StandardSchema } from '../../src/core/contract/standard-schema.ts';
import { type AttemptContext, landed, notLanded, type Semel, type Tool } from '../../src/index.ts';
import { type LandedEffect, senderHeaders } from '../support/effect-server/index.ts';
import { type LineName, lineOf } from './lines.ts';

export interface Args {
  readonly intent: string;
  /** The model words it anew at each call: the same intent. */
  readonly wording: string;
  /** What the schema of some contracts makes of the intent, and adds. */
  readonly ref?: string;
  readonly channel?: string;
}

export interface Value {
  /** The number that the target gave it. */
  readonly effect: number;
}

/** Where an attempt stands inside the effect. */
export type Inside = 'started' | 'prepared' | 'dispatched' | 'landed' | 'verifying';

/** What a contract may say besides its line. */
export interface Terms
  extends Pick<
    ContractDefinition,
    'per' | 'lease' | 'timeout' | 'verifyAfter' | 'retry' | 'maxAttempts' | 'window' | 'failureWindow'
  > {
  /** The intent is what the schema makes of the args. */
  readonly isDerived: boolean;
}

export interface World {
  readonly url: string;
  readonly at: (point: Inside, args: Args) => void | Promise<void>;
  readonly terms?: Partial<Terms>;
  /** @default 'fail' */
  readonly ifBusy?: 'wait' | 'fail';
}

/** Longer than every window in use. */
export const providerWindowMs = 90 * 86_400_000;

export function toolOf(semel: Semel, name: LineName, world: World): Tool<Args, Value> {
  const line = lineOf(name);
  const { url, at } = world;
  const target = targetOf(name);

  async function look({ intent }: Args): Promise<LandedEffect | undefined> {
    const query = new URLSearchParams({ namespace: semel.namespace, intent, target });
    const response = await fetch(`${url}/effects?${query}`);
    return ((await response.json()) as { effects: LandedEffect[] }).effects[0];
  }

  async function run(args: Args, ctx: AttemptContext<string | undefined>): Promise<Value> {
    await at('started', args);
    if (line.explicit) await ctx.dispatch();
    await at('dispatched', args);
    // Most mailers know neither our signal nor our fetch: a zombie's request leaves all the same.
    const send = line.keyed ? ctx.fetch : fetch;
    const response = await send(`${url}/do/${target}`, {
      method: 'POST',
      headers: senderHeaders({
        namespace: semel.namespace,
        intent: args.intent,
        fence: ctx.fence,
        attempt: ctx.attempt,
        pid: process.pid,
      }),
      body: ctx.prepared ?? args.wording,
    });
    await at('landed', args);
    if (!response.ok) throw new Error(`the target answered ${response.status}`);
    return (await response.json()) as Value;
  }

  const { isDerived = false, per = 'ever', ...terms } = world.terms ?? {};
  const definition = {
    name,
    effect: line.effect,
    per: per as Per,
    ...terms,
    identity: isDerived ? (['ref', 'channel'] as const) : (['intent'] as const),
    ifBusy: world.ifBusy ?? 'fail',
    ...(line.onDoubt === undefined ? {} : { onDoubt: line.onDoubt }),
    ...(line.explicit === undefined ? {} : { dispatch: 'explicit' as const }),
    ...(line.keyed === undefined
      ? {}
      : { provider: { name: 'effects', window: providerWindowMs, hosts: [new URL(url).host] } }),
    ...(line.verify === undefined
      ? {}
      : {
          verify: async (args: Args) => {
            const effect = await look(args);
            await at('verifying', args);
            return effect === undefined ? notLanded() : landed({ effect: effect.seq });
          },
        }),
    ...(line.prepare === undefined
      ? {}
      : {
          prepare: async (args: Args) => {
            // A model never writes the same mail twice.
            const text = `${args.wording} ${randomUUID()}`;
            await at('prepared', args);
            return text;
          },
        }),
    run,
  };
  return isDerived ? semel.tool({ ...definition, input: derived }) : semel.tool(definition);
}

/** The intent by another name, and a constant default. */
const derived: StandardSchema<Args> = {
  '~standard': {
    version: 1,
    vendor: 'storm',
    validate: (input) => ({
      value: { channel: 'mail', ...(input as Args), ref: `ref of ${(input as Args).intent}` } as Args,
    }),
  },
};

export function targetOf(name: LineName): string {
  return name;
}

/** What the effect server must know of the targets. */
export function targets(): Record<string, { keyed: { windowMs: number } }> {
  const keyed = { keyed: { windowMs: providerWindowMs } };
  return { keyed, 'prepared-keyed': keyed, 'irreversible-keyed': keyed };
}
