// The policy for a tool that already exists, and the contract it becomes. Refuses keys in what the model sees, unknown
// fields, and irreversible effects without a `per`; every other tool is bounded by the turn.

import type { ContractDefinition } from '../core/contract/contract.ts';
import { findSimilar } from '../core/contract/known-fields.ts';
import type { Per } from '../core/contract/period.ts';
import { type Effect, isRepeatable } from '../core/contract/words.ts';
import { SemelError } from '../core/errors.ts';
import type { Normaliser } from '../core/key/identity.ts';
import type { Path, ToolDefinition } from '../semel/index.ts';
import { collectTexts, fieldNames, isOpenSchema } from './schema.ts';

type Fields<Input> = readonly Path<Input>[];

/** How the effect of one tool may be repeated. The fields are those of `semel.tool`. */
export interface PolicyTerms<Input = unknown>
  extends Omit<
      ContractDefinition,
      'name' | 'identity' | 'content' | 'volatile' | 'strict' | 'normalize' | 'redact' | 'effect' | 'per'
    >,
    Pick<ToolDefinition<Input, unknown>, 'verify' | 'classify'> {
  readonly effect: Effect;
  /** What bounds one intent. @default 'turn'; required for an irreversible effect */
  readonly per?: Per;
  readonly identity?: Fields<Input>;
  readonly content?: Fields<Input>;
  readonly strict?: Fields<Input>;
  readonly volatile?: Fields<Input>;
  readonly normalize?: { readonly [P in Path<Input>]?: Normaliser };
  readonly redact?: Fields<Input>;
  /**
   * `by-call`: identical calls within one turn are separate intents, distinguished by tool_call_id. A model that
   * plans again uses new ids, and then the effect runs again.
   */
  readonly repeat?: 'by-call';
  /** The contract's name. @default the tool's name */
  readonly name?: string;
}

/** The effect alone, or all terms. An irreversible effect needs `per`. */
export type Policy<Input = unknown> =
  | Exclude<Effect, 'irreversible'>
  | (PolicyTerms<Input> & ({ readonly effect: Exclude<Effect, 'irreversible'> } | { readonly per: Per }));

/** As a policy file or an untyped program gives it; `readPolicy` checks it. */
export type AnyPolicy = Effect | PolicyTerms;

export interface Terms {
  readonly definition: Omit<ToolDefinition<unknown, unknown>, 'run'>;
  readonly byCall: boolean;
}

export function readPolicy(tool: string, policy: AnyPolicy | undefined): Terms {
  if (policy === undefined)
    refuse(
      tool,
      `${tool} has no policy, so semel cannot tell how often it may run.`,
      "Add one, for example 'read' or { effect: 'write-non-idempotent', content: ['body'] }.",
    );
  const terms = typeof policy === 'string' ? { effect: policy } : policy;
  if (typeof terms !== 'object' || terms === null)
    refuse(tool, `${tool}: its policy is not an object.`, "Write { effect: 'write-non-idempotent' }.");
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
      `${tool}: an irreversible effect needs \`per\`: within what two equal calls are one.`,
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

/** A model would make up a new key with every plan. */
export function refuseKeyFields(tool: string, schema: unknown, description: unknown): void {
  const { names, descriptions } = collectTexts(schema);
  const field = names.find((name) => keyLike.test(name));
  if (field !== undefined)
    refuse(
      tool,
      `${tool}: the model would supply the key, as \`${field}\`.`,
      'Remove it from the schema: semel derives the key.',
    );
  if ([description, ...descriptions].some((text) => typeof text === 'string' && keyInWords.test(text)))
    refuse(
      tool,
      `${tool}: its description mentions an idempotency key to the model.`,
      'Remove it from the description: semel derives the key.',
    );
}

const fieldLists = ['identity', 'content', 'volatile', 'strict', 'redact'] as const;

/** A field that the schema does not have is misspelt: the field it was meant to name would make a new intent, or be stored. */
export function refuseUnknownFields(tool: string, policy: AnyPolicy | undefined, schema: unknown): void {
  if (typeof policy !== 'object' || isOpenSchema(schema)) return;
  const known = fieldNames(schema);
  if (known.length === 0) return;
  const has = new Set(known);
  for (const list of fieldLists) {
    const named: readonly string[] = policy[list] ?? [];
    const unknown = named.find((path) => !has.has(path) && !has.has(firstStep(path)));
    if (unknown === undefined) continue;
    const meant = findSimilar(known, firstStep(unknown));
    refuse(
      tool,
      `${tool}: \`${list}\` names \`${unknown}\`, but its schema has no such field.`,
      meant === undefined
        ? `Its fields are ${shorten(known.slice(0, maxNames).join(', '))}.`
        : `Did you mean \`${meant}\`?`,
    );
  }
}

/** A server may list any number of fields. */
const maxNames = 50;
const maxCharacters = 1_000;

function shorten(text: string): string {
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text;
}

function firstStep(path: string): string {
  return String(path).split('.')[0] as string;
}

/**
 * Looks up the policies of several tools by name. Refuses a policy without a tool, which is a misspelt name; a tool without
 * a policy is refused by its guard.
 */
export function createPolicyLookup(tools: object, policies: object): (name: string) => Policy | undefined {
  const names = Object.keys(tools);
  const example = "guard(semel, { refund }, { refund: { effect: '…' } })";
  if (Array.isArray(tools))
    refuse('tools', 'The tools are a list, but each needs a name.', `Write ${example}.`);
  if (typeof (policies as unknown) === 'string' || ('effect' in policies && !names.includes('effect')))
    refuse(
      'policies',
      'This is a single policy, but the second argument is not a single tool that can be guarded.',
      `Name the tool and its policy: ${example}.`,
    );
  for (const name of Object.keys(policies))
    if (!names.includes(name))
      refuse(
        name,
        `There is a policy for \`${name}\`, but no such tool.`,
        `The tools are ${names.join(', ')}.`,
      );
  return (name) => (Object.hasOwn(policies, name) ? (policies as Record<string, Policy>)[name] : undefined);
}

function refuse(path: string, happened: string, next: string): never {
  throw new SemelError('CONTRACT_INVALID', happened, { path, next });
}
