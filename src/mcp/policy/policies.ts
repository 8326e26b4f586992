// The policy of each of a server's tools: from the policy file, otherwise from the tool's hints, otherwise a non-idempotent
// write. Refuses a file with any mistake.

import { defineContract } from '../../core/contract/contract.ts';
import { type Duration, durationMs } from '../../core/contract/duration.ts';
import { checkKnown, fieldNames as knownFields } from '../../core/contract/known-fields.ts';
import { day, hour, minute, month, type Per, week } from '../../core/contract/period.ts';
import { effects } from '../../core/contract/words.ts';
import { isSemelError, SemelError } from '../../core/errors.ts';
import { shortDigest } from '../../core/key/key.ts';
import { repeatedName } from '../../core/key/repeated-name.ts';
import { type AnyPolicy, type PolicyTerms, readPolicy } from '../../guard/index.ts';
import type { ListedTool } from '../protocol/messages.ts';
import { type FileProvider, readProvider, toProvider } from './provider.ts';

/** What a tool's error result means. */
export type ErrorMeaning = 'ask' | 'in-doubt' | 'refused' | 'not-landed';

export const errorMeanings: readonly ErrorMeaning[] = ['ask', 'in-doubt', 'refused', 'not-landed'];

/** The model may judge an ordinary tool's error. A person judges irreversible effects and high stakes. */
export function defaultErrors({ effect, stakes }: Pick<PolicyTerms, 'effect' | 'stakes'>): ErrorMeaning {
  return effect === 'irreversible' || stakes === 'high' ? 'in-doubt' : 'ask';
}

/** One tool in the file. */
export interface FilePolicy
  extends Pick<
    PolicyTerms,
    | 'effect'
    | 'stakes'
    | 'identity'
    | 'content'
    | 'strict'
    | 'volatile'
    | 'window'
    | 'weakWindow'
    | 'failureWindow'
    | 'lease'
    | 'timeout'
    | 'redact'
    | 'repeat'
    | 'share'
  > {
  /** For people. */
  readonly $comment?: string;
  /** `{ "day": "Europe/Paris" }` is one intent per day there; `"24h"` is a TTL from the first success. */
  readonly per?: 'turn' | 'conversation' | 'run' | 'ever' | Duration | Readonly<Record<string, string>>;
  /** @default 'ask'; 'in-doubt' for an irreversible effect or high stakes */
  readonly errors?: ErrorMeaning;
  /** Who honours the key. Within its window, a call in doubt runs again under the same key. */
  readonly provider?: string | FileProvider;
}

export interface PolicyFile {
  readonly $schema?: string;
  /** For people. */
  readonly $comment?: string;
  readonly version: 1;
  /** How long a call answers equal calls if the conversation is unknown. */
  readonly weakWindow?: Duration;
  /** Whether to trust the server's own hints about its tools. @default 'trust' */
  readonly hints?: 'trust' | 'ignore';
  readonly tools?: Readonly<Record<string, string | FilePolicy>>;
}

export interface ToolPolicy {
  readonly policy: AnyPolicy;
  readonly errors: ErrorMeaning;
  /** Where the server takes the key; undefined if it takes none. */
  readonly key?: KeyPlace;
  /** Where the policy comes from. */
  readonly source: 'file' | 'readOnlyHint' | 'idempotentHint' | 'default';
}

/** The argument of the tool; undefined: `_meta`. */
export interface KeyPlace {
  readonly argument: string | undefined;
}

/** How long a call of an unknown conversation answers equal calls. */
export const defaultWeakWindow: Duration = '10m';

/** A tool may take long; its lease is renewed meanwhile. */
const usualTimeout: Duration = '1h';

/** Most clients give up after a minute: after a crash, a retry must be answered before that. */
const usualLease: Duration = '20s';

export const fileFields: ReadonlySet<string> = knownFields<PolicyFile>({
  $schema: true,
  $comment: true,
  version: true,
  weakWindow: true,
  hints: true,
  tools: true,
});
export const toolFields: ReadonlySet<string> = knownFields<FilePolicy>({
  effect: true,
  stakes: true,
  identity: true,
  content: true,
  strict: true,
  volatile: true,
  window: true,
  weakWindow: true,
  failureWindow: true,
  lease: true,
  timeout: true,
  redact: true,
  repeat: true,
  share: true,
  per: true,
  $comment: true,
  errors: true,
  provider: true,
});

/** Reports every mistake with its place: a policy that is not understood guards nothing. */
export function readPolicyFile(text: string, name: string): PolicyFile {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (cause) {
    throw refusal(name, '', `is not valid JSON: ${(cause as Error).message}`, 'Correct it.');
  }
  if (!isObject(file)) throw refusal(name, '', 'is not an object', 'Write { "version": 1, "tools": { … } }.');
  const twice = repeatedName(text);
  // Only the last would count, and the first may be the one that guards.
  if (twice !== undefined) throw refusal(name, twice, 'appears twice in one place', 'Remove one of the two.');
  const at = (path: string, check: () => void) => checkAt(name, path, check);
  at('', () => checkKnown(name, file, fileFields));
  const { $schema, $comment, version, hints, weakWindow, tools = {} } = file as unknown as PolicyFile;
  const oneOf = (path: string, value: unknown, allowed: readonly unknown[]) => {
    if (allowed.includes(value)) return;
    const next = `Write ${allowed.map((each) => JSON.stringify(each)).join(' or ')}.`;
    throw refusal(name, path, `is ${JSON.stringify(value) ?? 'missing'}`, next);
  };
  oneOf('version', version, [1]);
  if (hints !== undefined) oneOf('hints', hints, ['trust', 'ignore']);
  if ($schema !== undefined && typeof $schema !== 'string')
    throw refusal(name, '$schema', 'is not a string', "Write the schema's path or URL, or leave it out.");
  const comment = (path: string, text: unknown) => {
    if (text !== undefined && typeof text !== 'string')
      throw refusal(name, path, 'is not a string', 'Write a string, or leave it out.');
  };
  comment('$comment', $comment);
  if (weakWindow !== undefined) at('weakWindow', () => durationMs(weakWindow, 'weakWindow'));
  if (!isObject(tools)) throw refusal(name, 'tools', 'is not an object', 'Name each tool: { "send": "…" }.');
  for (const [tool, policy] of Object.entries(tools)) {
    const path = `tools.${tool}`;
    const terms = typeof policy === 'string' ? { effect: policy } : (policy as unknown);
    if (!isObject(terms)) throw refusal(name, path, 'is not a policy', 'Write "read", or { "effect": "…" }.');
    at(path, () => checkKnown(tool, terms, toolFields));
    for (const [field, value] of Object.entries(terms))
      if (value === null)
        throw refusal(name, `${path}.${field}`, 'is null', 'Leave it out, or give it a value.');
    const { effect, errors, stakes, repeat, per, provider, $comment: note } = terms as Partial<FilePolicy>;
    oneOf(typeof policy === 'string' ? path : `${path}.effect`, effect, effects);
    comment(`${path}.$comment`, note);
    if (errors !== undefined) oneOf(`${path}.errors`, errors, errorMeanings);
    if (stakes !== undefined) oneOf(`${path}.stakes`, stakes, ['normal', 'high']);
    if (repeat !== undefined) oneOf(`${path}.repeat`, repeat, ['by-call']);
    if (per !== undefined) at(`${path}.per`, () => perOf(per));
    if (provider !== undefined) at(`${path}.provider`, () => void toProvider(readProvider(provider)));
    at(path, () => {
      const complete = policyFor({ name: tool }, file as unknown as PolicyFile).policy;
      defineContract(readPolicy(anyTool, complete).definition, { hasVerify: false, hasPrepare: false });
    });
  }
  return file as unknown as PolicyFile;
}

const anyTool = 'the-tool-of-a-file';

/** Rewrites advice that only a program can follow. */
function adviceForFile(next: string): string {
  if (next.startsWith('Add `per`'))
    return 'Add "per": "ever", "conversation", "turn", or { "day": "Europe/Paris" }.';
  return next.replace('Add `verify`, or shorten `window`.', 'Shorten `window`.');
}

/** Adds the place in the file: a check knows only its own field. */
function checkAt(name: string, path: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!isSemelError(error)) throw error;
    const field = error.path === undefined || error.path === anyTool ? '' : error.path;
    const last = path.split('.').at(-1) as string;
    const inside = field === last || field.startsWith(`${last}.`) ? '' : field;
    const place = [path, inside].filter((part) => part !== '').join('.');
    const happened = error.happened.replace(/^[^:]*: /, '').replace(/\.$/, '');
    const next = adviceForFile(error.correctiveAction);
    throw refusal(name, place, `is wrong: ${happened}`, next);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The file wins over the tool's hints. */
export function policyFor(tool: ListedTool, file: PolicyFile): ToolPolicy {
  const said =
    file.tools !== undefined && Object.hasOwn(file.tools, tool.name) ? file.tools[tool.name] : undefined;
  if (said !== undefined) {
    const {
      $comment: _,
      errors,
      per,
      provider,
      ...terms
    }: FilePolicy = typeof said === 'string' ? { effect: said as FilePolicy['effect'] } : said;
    const policy = { ...terms, ...(per === undefined ? {} : { per: perOf(per) }) };
    const complete = withDefaults(policy, file);
    return {
      policy: complete,
      errors: errors ?? defaultErrors(policy),
      source: 'file',
      ...(provider === undefined ? {} : withProvider(complete, readProvider(provider))),
    };
  }
  const { readOnlyHint, idempotentHint } = tool.annotations ?? {};
  const isTrusted = file.hints !== 'ignore';
  if (isTrusted && readOnlyHint === true) return { policy: 'read', errors: 'ask', source: 'readOnlyHint' };
  if (isTrusted && idempotentHint === true)
    return {
      policy: withDefaults({ effect: 'write-idempotent' }, file),
      errors: 'ask',
      source: 'idempotentHint',
    };
  return {
    policy: withDefaults({ effect: 'write-non-idempotent' }, file),
    errors: 'ask',
    source: 'default',
  };
}

/** The terms with which a program would define the tool: without what suits a proxy in front of a model. */
export function toTerms(
  name: string,
  said: string | FilePolicy,
): ReturnType<typeof readPolicy>['definition'] {
  const {
    $comment: _,
    errors: _errors,
    per,
    provider,
    ...terms
  }: FilePolicy = typeof said === 'string' ? { effect: said as FilePolicy['effect'] } : said;
  return readPolicy(name, {
    ...terms,
    ...(per === undefined ? {} : { per: perOf(per) }),
    ...(provider === undefined ? {} : { provider: toProvider(readProvider(provider)) }),
  }).definition;
}

/** Our key replaces whatever the model puts into the argument, so the argument is volatile. */
function withProvider(policy: PolicyTerms, provider: FileProvider): Pick<ToolPolicy, 'policy' | 'key'> {
  const { argument } = provider;
  const volatile = argument === undefined ? policy.volatile : [...(policy.volatile ?? []), argument];
  return {
    policy: { ...policy, provider: toProvider(provider), ...(volatile === undefined ? {} : { volatile }) },
    key: { argument },
  };
}

function withDefaults(policy: PolicyTerms, file: PolicyFile): PolicyTerms {
  return {
    weakWindow: file.weakWindow ?? defaultWeakWindow,
    timeout: usualTimeout,
    lease: usualLease,
    ...policy,
  };
}

export const periods: readonly string[] = ['turn', 'conversation', 'run', 'ever'];
export const calendar = { minute, hour, day, week, month } as const;

function perOf(per: NonNullable<FilePolicy['per']>): Per {
  if (typeof per === 'string' && periods.includes(per)) return per;
  if (typeof per === 'number' || (typeof per === 'string' && /^\d/.test(per)))
    return durationMs(per as Duration, 'per');
  const [[unit, zone] = ['', ''], ...more] = isObject(per) ? Object.entries(per) : [];
  if (more.length > 0 || !Object.hasOwn(calendar, unit) || typeof zone !== 'string')
    throw new SemelError('CONTRACT_INVALID', `${JSON.stringify(per)} is not a period.`, {
      next: `Write ${periods.map((each) => JSON.stringify(each)).join(', ')}, "24h", or { "day": "Europe/Paris" }.`,
    });
  return calendar[unit as keyof typeof calendar](zone);
}

/**
 * Includes the server: two servers may have tools of the same name. A name that is ambiguous (a dot in the server's name) or
 * not valid for a contract gets a digest after two dots, which no other name has.
 */
export function contractName(server: string, tool: string): string {
  const name = `${server}.${tool}`;
  const isPlain = /^[A-Za-z0-9][A-Za-z0-9_-]*\.[A-Za-z0-9._-]+$/.test(name) && !server.includes('.');
  if (isPlain && name.length <= 64 && !name.includes('..')) return name;
  const readable = name.replace(/[^A-Za-z0-9._-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  return `${readable.slice(0, 52)}..${shortDigest('tool', server, tool)}`;
}

function refusal(name: string, path: string, what: string, next: string): SemelError {
  const subject = path === '' ? name : `${name}: \`${path}\``;
  return new SemelError('CONTRACT_INVALID', `${subject} ${what}.`, { path: path || name, next });
}
