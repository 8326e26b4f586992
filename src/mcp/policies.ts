// What each tool of a server may do: as the policy file says, else by the hints of the tool itself, else with care.

import type { Duration } from '../core/duration.ts';
import { SemelError } from '../core/errors.ts';
import { shortDigest } from '../core/key.ts';
import { checkKnown, fieldsOf as knownFields } from '../core/known-fields.ts';
import { day, hour, minute, month, type Per, week } from '../core/period.ts';
import { effects } from '../core/words.ts';
import type { Policy, PolicyTerms } from '../guard/index.ts';
import { fieldsOf, type ListedTool } from './messages.ts';

/** What a tool means by a result that is marked as an error. */
export type ErrorMeaning = 'in-doubt' | 'refused' | 'not-landed';

export const errorMeanings: readonly ErrorMeaning[] = ['in-doubt', 'refused', 'not-landed'];

/** One tool in the file. */
export interface FilePolicy
  extends Pick<
    PolicyTerms,
    | 'effect'
    | 'stakes'
    | 'identity'
    | 'content'
    | 'volatile'
    | 'window'
    | 'weakWindow'
    | 'failureWindow'
    | 'lease'
    | 'timeout'
    | 'redact'
    | 'repeat'
  > {
  /** `{ "day": "Europe/Paris" }` is one intent per day there. */
  readonly per?: 'turn' | 'conversation' | 'run' | 'ever' | Readonly<Record<string, string>>;
  /** @default 'in-doubt' */
  readonly errors?: ErrorMeaning;
}

export interface PolicyFile {
  readonly $schema?: string;
  readonly version: 1;
  /** How long a call answers for another like it where nobody says which conversation it is of. */
  readonly weakWindow?: Duration;
  /** What the server says of its own tools is not believed. @default 'trust' */
  readonly hints?: 'trust' | 'ignore';
  readonly tools?: Readonly<Record<string, string | FilePolicy>>;
}

export interface ToolPolicy {
  readonly policy: Policy;
  readonly errors: ErrorMeaning;
  /** Why it is so. */
  readonly source: 'file' | 'readOnlyHint' | 'idempotentHint' | 'default';
}

/** A call that nobody can place answers for its like so long. */
export const usualWeakWindow: Duration = '10m';

/** A tool may take long; its claim is renewed meanwhile. */
const usualTimeout: Duration = '1h';

const fileFields = knownFields<PolicyFile>({
  $schema: true,
  version: true,
  weakWindow: true,
  hints: true,
  tools: true,
});
const toolFields = knownFields<FilePolicy>({
  effect: true,
  stakes: true,
  identity: true,
  content: true,
  volatile: true,
  window: true,
  weakWindow: true,
  failureWindow: true,
  lease: true,
  timeout: true,
  redact: true,
  repeat: true,
  per: true,
  errors: true,
});

export function readPolicyFile(text: string, name: string): PolicyFile {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (cause) {
    throw refusal(name, `${name} is no JSON: ${(cause as Error).message}.`, 'Correct it.');
  }
  if (typeof file !== 'object' || file === null || Array.isArray(file))
    throw refusal(name, `${name} is no object.`, 'Write { "version": 1, "tools": { … } }.');
  checkKnown(name, file, fileFields);
  const { version, hints, tools } = file as PolicyFile;
  if (version !== 1) throw refusal('version', `${name}: \`version\` is not 1.`, 'Write "version": 1.');
  if (hints !== undefined && hints !== 'trust' && hints !== 'ignore')
    throw refusal('hints', `${name}: \`hints\` is ${JSON.stringify(hints)}.`, 'Write "trust" or "ignore".');
  if (tools !== undefined && (typeof tools !== 'object' || tools === null || Array.isArray(tools)))
    throw refusal('tools', `${name}: \`tools\` is no object.`, 'Name each tool: { "send": "…" }.');
  for (const [tool, policy] of Object.entries(tools ?? {})) checkTool(name, tool, policy);
  return file as PolicyFile;
}

function checkTool(name: string, tool: string, policy: unknown): void {
  const at = `tools.${tool}`;
  const said = typeof policy === 'string' ? { effect: policy } : fieldsOf(policy);
  const { effect, errors, per } = said as Partial<FilePolicy>;
  if (typeof policy !== 'string') {
    if (typeof policy !== 'object' || policy === null)
      throw refusal(at, `${name}: \`${at}\` is no policy.`, 'Write "read", or { "effect": "…" }.');
    checkKnown(`${name}, ${tool}`, policy, toolFields);
  }
  if (!(effects as readonly unknown[]).includes(effect))
    throw refusal(
      at,
      `${name}: ${tool} has ${effect === undefined ? 'no effect' : `the effect ${JSON.stringify(effect)}`}.`,
      `Use one of ${effects.join(', ')}.`,
    );
  if (errors !== undefined && !errorMeanings.includes(errors))
    throw refusal(
      `${at}.errors`,
      `${name}: \`errors\` of ${tool} is not known.`,
      `Use one of ${errorMeanings.join(', ')}.`,
    );
  if (per !== undefined) perOf(per, `${at}.per`);
}

/** What holds for a tool; the file first, and its own hints where they are believed. */
export function policyFor(tool: ListedTool, file: PolicyFile): ToolPolicy {
  const said =
    file.tools !== undefined && Object.hasOwn(file.tools, tool.name) ? file.tools[tool.name] : undefined;
  if (said !== undefined) {
    const { errors = 'in-doubt', per, ...terms } = typeof said === 'string' ? { effect: said } : said;
    const policy = { ...terms, ...(per === undefined ? {} : { per: perOf(per, 'per') }) } as PolicyTerms;
    return { policy: withUsual(policy, file), errors, source: 'file' };
  }
  const { readOnlyHint, idempotentHint } = tool.annotations ?? {};
  const isTrusted = file.hints !== 'ignore';
  if (isTrusted && readOnlyHint === true)
    return { policy: 'read', errors: 'in-doubt', source: 'readOnlyHint' };
  if (isTrusted && idempotentHint === true)
    return {
      policy: withUsual({ effect: 'write-idempotent' }, file),
      errors: 'in-doubt',
      source: 'idempotentHint',
    };
  return {
    policy: withUsual({ effect: 'write-non-idempotent' }, file),
    errors: 'in-doubt',
    source: 'default',
  };
}

function withUsual(policy: PolicyTerms, file: PolicyFile): PolicyTerms {
  return { weakWindow: file.weakWindow ?? usualWeakWindow, timeout: usualTimeout, ...policy };
}

const calendar = { minute, hour, day, week, month } as const;

function perOf(per: NonNullable<FilePolicy['per']>, path: string): Per {
  if (typeof per === 'string') return per;
  const [[unit, zone] = ['', ''], ...more] = Object.entries(fieldsOf(per));
  if (more.length > 0 || !Object.hasOwn(calendar, unit) || typeof zone !== 'string')
    throw refusal(path, `\`${path}\` is no period.`, 'Write "turn", "ever", or { "day": "Europe/Paris" }.');
  return calendar[unit as keyof typeof calendar](zone);
}

/** Tools of two servers may have one name. What a contract cannot be called is replaced, and told apart by a digest. */
export function contractName(server: string, tool: string): string {
  const name = `${server}.${tool}`;
  const plain = name.replace(/[^A-Za-z0-9._-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  if (plain === name && name.length <= 64) return name;
  return `${plain.slice(0, 52)}-${shortDigest('tool', name).slice(0, 8)}`;
}

function refusal(path: string, happened: string, next: string): SemelError {
  return new SemelError('CONTRACT_INVALID', happened, { path, next });
}
