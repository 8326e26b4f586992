// What is said of a tool that exists already, and how it becomes a contract. A tool of an agent is bounded by the turn
// unless it is said otherwise; what cannot be undone must say it.

import type { ContractDefinition } from '../core/contract/contract.ts';
import { nearIn } from '../core/contract/known-fields.ts';
import type { Per } from '../core/contract/period.ts';
import { type Effect, isRepeatable } from '../core/contract/words.ts';
import { SemelError } from '../core/errors.ts';
import type { Normaliser } from '../core/key/identity.ts';
import type { Path, ToolDefinition } from '../semel/index.ts';
import { fieldNames, isOpen, shownIn } from './schema.ts';

type Fields<Input> = readonly Path<Input>[];

/** How the effect of one tool may be repeated. The fields are those of `semel.tool`. */
export interface PolicyTerms<Input = unknown>
  extends Omit<
      ContractDefinition,
      'name' | 'identity' | 'content' | 'volatile' | 'normalize' | 'redact' | 'effect' | 'per'
    >,
    Pick<ToolDefinition<Input, unknown>, 'verify' | 'classify'> {
  readonly effect: Effect;
  /** What bounds one intent. @default 'turn'; an irreversible effect has to say it */
  readonly per?: Per;
  readonly identity?: Fields<Input>;
  readonly content?: Fields<Input>;
  readonly volatile?: Fields<Input>;
  readonly normalize?: { readonly [P in Path<Input>]?: Normaliser };
  readonly redact?: Fields<Input>;
  /**
   * `by-call`: identical calls of one turn are all meant, each once by its tool_call_id. A model that plans anew gives
   * new ids, and then it is done again.
   */
  readonly repeat?: 'by-call';
  /** The name of the contract. @default the name of the tool */
  readonly name?: string;
}

/** The effect class alone, where nothing else has to be said. What cannot be undone has to say what bounds it. */
export type Policy<Input = unknown> =
  | Exclude<Effect, 'irreversible'>
  | (PolicyTerms<Input> & ({ readonly effect: Exclude<Effect, 'irreversible'> } | { readonly per: Per }));

/** As it comes from a file, or from a program without types: checked when it is read. */
export type AnyPolicy = Effect | PolicyTerms;

export interface Terms {
  readonly definition: Omit<ToolDefinition<unknown, unknown>, 'run'>;
  readonly byCall: boolean;
}

export function termsOf(tool: string, policy: AnyPolicy | undefined): Terms {
  if (policy === undefined)
    refuse(
      tool,
      `${tool} has no policy, so nobody knows how often it may run.`,
      "Add it: 'read', or { effect: 'write-non-idempotent', content: ['body'] }, for example.",
    );
  const terms = typeof policy === 'string' ? { effect: policy } : policy;
  if (typeof terms !== 'object' || terms === null)
    refuse(tool, `${tool}: its policy is no object.`, "Write { effect: 'write-non-idempotent' }.");
  const { repeat, ...said } = terms as PolicyTerms;
  if (repeat !== undefined && repeat !== 'by-call')
    refuse(
      tool,
      `${tool}: \`repeat\` is ${JSON.stringify(repeat)}.`,
      "Write repeat: 'by-call', or leave it out.",
    );
  if (said.effect === 'irreversible' && said.per === undefined)
    refuse(
      tool,
      `${tool}: what cannot be undone has to say what bounds one intent.`,
      "Add `per`: 'ever', 'conversation', 'turn', day('Europe/Paris'), …",
    );
  return {
    definition: {
      name: tool,
      ...(isRepeatable(said.effect) ? {} : { per: 'turn' }),
      ...said,
    } as Terms['definition'],
    byCall: repeat === 'by-call',
  };
}

const keyLike = /^(x[-_])?idempoten(cy|t)[-_]?(key|id|token)$/i;
const keyInWords = /idempoten(cy|t)[ _-]?(key|id|token)/i;

/** A key that a model can vary is none: it would word it anew with every plan. */
export function refuseKeys(tool: string, schema: unknown, description: unknown): void {
  const { names, words } = shownIn(schema);
  const field = names.find((name) => keyLike.test(name));
  if (field !== undefined)
    refuse(
      tool,
      `${tool}: the model would supply the key, as \`${field}\`.`,
      'Take it out of the schema: semel makes the key.',
    );
  if ([description, ...words].some((text) => typeof text === 'string' && keyInWords.test(text)))
    refuse(
      tool,
      `${tool}: its description speaks to the model of a key.`,
      'Take it out of the description: semel makes the key.',
    );
}

const fieldLists = ['identity', 'content', 'volatile', 'redact'] as const;

/** A field that the schema does not have is a misspelt one: what it was to name would be an intent of its own, or stored. */
export function refuseStrangers(tool: string, policy: AnyPolicy | undefined, schema: unknown): void {
  if (typeof policy !== 'object' || isOpen(schema)) return;
  const known = fieldNames(schema);
  if (known.length === 0) return;
  const has = new Set(known);
  for (const list of fieldLists) {
    const named: readonly string[] = policy[list] ?? [];
    const stranger = named.find((path) => !has.has(path) && !has.has(headOf(path)));
    if (stranger === undefined) continue;
    const meant = nearIn(known, headOf(stranger));
    refuse(
      tool,
      `${tool}: \`${list}\` names \`${stranger}\`, and its schema has no such field.`,
      meant === undefined
        ? `Its fields are ${shortened(known.slice(0, mostNamed).join(', '))}.`
        : `Did you mean \`${meant}\`?`,
    );
  }
}

/** A server may list as many as it likes. */
const mostNamed = 50;
const mostCharacters = 1_000;

function shortened(text: string): string {
  return text.length > mostCharacters ? `${text.slice(0, mostCharacters)}…` : text;
}

function headOf(path: string): string {
  return String(path).split('.')[0] as string;
}

function refuse(path: string, happened: string, next: string): never {
  throw new SemelError('CONTRACT_INVALID', happened, { path, next });
}
