// `semel key`: which key a call would have, what it is made of, and why two calls share a key or not. Uses the library's
// own rules; claims nothing, and creates no ledger.

import { formatDuration } from '../../../core/contract/duration.ts';
import type { ContractPer } from '../../../core/contract/period.ts';
import { isSemelError } from '../../../core/errors.ts';
import { canonicalJson } from '../../../core/key/canonical-json.ts';
import { digestContent, findDrift } from '../../../core/key/identity.ts';
import { createSemel, type KeyInfo, type RecordInfo, type ToolFunction } from '../../../semel/index.ts';
import { flagReader } from '../../args/flag-values.ts';
import { command } from '../../command.ts';
import { choiceOrDuration, text, texts } from '../../flags.ts';
import { type LedgerChoice, ledgerFor, namespaceOf } from '../../ledger.ts';
import { oneLine, print, printable, printJson, relative, styled } from '../../render/print.ts';
import { stateOf } from '../../render/state.ts';
import { usageError } from '../../usage.ts';
import { callsOf, normaliseOf, pathsOf, periods, perOf } from './call.ts';
import { type Difference, differencesOf, freshHint, hintOf } from './difference.ts';

export default command({
  name: 'key',
  takes: '<name> [--id name=value …] [options]',
  about: `Shows the key that a call of this contract would have, what it is made of, and whether the ledger has a record of it. With a
second set of args (--and, or --id-json twice) it explains why the two are one intent, or why not. Values of --id are
strings; --id-json takes any JSON.`,
  flags: {
    id: texts('<name>=<value>', 'a field of the args'),
    'id-json': texts('<json|file|->', 'the args as JSON; give it twice to compare two calls'),
    and: text('<json>', 'args of a second call, to compare'),
    per: choiceOrDuration(periods, 'how often the intent may be done; 24h: a TTL (default: ever)'),
    tz: text('<zone>', 'time zone of a calendar period (default: UTC)'),
    at: text('<time>', 'instant of a calendar period (default: now)'),
    identity: text('<a,b>', 'fields that identify the intent; all others are content'),
    content: text('<a,b>', 'fields that may be worded differently'),
    volatile: text('<a,b>', 'fields to ignore'),
    normalize: texts('<field>=<how>', 'email, e164, money, trim, nfc or lower'),
    conversation: text('<id>', 'for --per turn and conversation'),
    turn: text('<id>', 'for --per turn'),
    run: text('<id>', 'for --per run'),
    key: text('<key>', "the caller's own key, instead of one from the args"),
    again: text('<why>', 'the reason to do it once more on purpose'),
  },
  examples: [
    'semel key email.send --id lead=42 --id template=welcome --per day --tz Europe/Paris',
    `semel key email.send --id-json call.json --identity lead --and '{"lead":42,"body":"Hi"}'`,
  ],
  async run({ values, positionals }) {
    const [name] = positionals;
    if (name === undefined || positionals.length > 1)
      throw usageError('key', 'expects the name of one contract', 'Write: semel key email.send --id lead=42');
    const calls = callsOf(values);
    const namespace = namespaceOf(values);
    await using semel = createSemel({
      store: 'memory:',
      namespace,
      mode: 'enforce',
      onWarning: () => undefined,
    });
    const [identity, content, volatile] = [values.identity, values.content, values.volatile].map(pathsOf);
    const tool: ToolFunction<unknown, unknown> = semel.tool<unknown, unknown>({
      name,
      effect: 'write-non-idempotent',
      per: perOf(values.per ?? 'ever', values.tz),
      ...(identity === undefined ? {} : { identity }),
      ...(content === undefined ? {} : { content }),
      ...(volatile === undefined ? {} : { volatile }),
      normalize: normaliseOf(values.normalize ?? []),
      run: () => undefined,
    });
    const { conversation, turn, run, key, again } = values;
    const at = flagReader('key', values).instant('at', values.tz);
    const options = Object.fromEntries(
      Object.entries({ conversation, turn, run, key, again, at }).filter(([, value]) => value !== undefined),
    );
    const infos: KeyInfo[] = [];
    for (const args of calls) infos.push(await semel.keyOf(tool, args, options));
    const ledger = await recordsOf(values, infos);
    const [one, other] = infos as [KeyInfo, KeyInfo | undefined];
    const comparison = other === undefined ? null : compare(tool, calls, [one, other]);
    if (values.json) {
      printJson({
        calls: infos.map((info, n) => ({ ...info, hints: hintsOf(info), record: ledger.records[n] ?? null })),
        ledger: ledger.found,
        comparison,
      });
      return 0;
    }
    infos.forEach((info, n) => {
      if (other !== undefined) print(styled('bold', n === 0 ? 'first call' : 'second call'));
      print(...describeKey(info, tool, ledger.found, ledger.records[n]).map(printable), '');
    });
    if (comparison !== null) print(...sentences(comparison).map(printable));
    return 0;
  },
});

interface Lookup {
  readonly found: boolean;
  readonly records: readonly (RecordInfo | undefined)[];
}

/** A key can be derived without a ledger. */
async function recordsOf(choice: LedgerChoice, infos: readonly KeyInfo[]): Promise<Lookup> {
  try {
    await using semel = ledgerFor(choice);
    const records = [];
    for (const { key } of infos) records.push(await semel.records.get(key));
    return { found: true, records };
  } catch (error) {
    if (isSemelError(error, 'STORE_UNAVAILABLE')) return { found: false, records: [] };
    throw error;
  }
}

interface Comparison {
  readonly same: boolean;
  /** The fields of the identity that make two keys of them. */
  readonly identity: readonly (Difference & { readonly hint: string | null })[];
  /** Worded differently; the same intent all the same. */
  readonly content: readonly string[];
  /** Different, and ignored. */
  readonly ignored: readonly string[];
  /** A caller's own key for other identity args: the second call gets KEY_CONFLICT. */
  readonly conflict: boolean;
}

function compare(
  tool: ToolFunction<unknown, unknown>,
  [first, second]: readonly unknown[],
  [one, other]: readonly [KeyInfo, KeyInfo],
): Comparison {
  const { fields } = tool.contract;
  const content = findDrift(digestContent('', first, fields), digestContent('', second, fields));
  const identity = differencesOf(one.identity, other.identity);
  const inside = (path: string, paths: readonly string[]) =>
    paths.some((each) => path === each || path.startsWith(`${each}.`));
  const ignored = differencesOf(first, second)
    .map(({ path }) => path)
    .filter((path) => !inside(path, content) && !identity.some((each) => each.path === path));
  return {
    same: one.key === other.key,
    identity: identity.map((each) => ({ ...each, hint: hintOf(each) ?? null })),
    content,
    ignored,
    conflict: one.key === other.key && identity.length > 0,
  };
}

/** What looks fresh in the identity of a single call. */
function hintsOf({ identity }: KeyInfo): readonly string[] {
  return differencesOf({}, typeof identity === 'object' && identity !== null ? identity : {}).flatMap(
    ({ path, second }) => {
      const hint = freshHint(path, second);
      return hint === undefined ? [] : [`${path}: ${hint}`];
    },
  );
}

function describeKey(
  info: KeyInfo,
  { contract }: ToolFunction<unknown, unknown>,
  hasLedger: boolean,
  record: RecordInfo | undefined,
): readonly string[] {
  const { per, fields } = contract;
  const isCallers = info.period === '';
  const unit = typeof per === 'object' ? `${per.unit}, ${per.zone}` : String(per);
  const ends =
    info.periodEndsAt && `, until ${info.periodEndsAt.toISOString()} (${relative(info.periodEndsAt)})`;
  const period = isCallers
    ? "none: the caller's own key is used as it is"
    : `${unit}: ${info.period}${ends ?? ''}`;
  const normalised = Object.entries(contract.normalize).map(([path, how]) => `${path} (${String(how)})`);
  const lines: readonly (readonly [string, string])[] = [
    ['key', info.key],
    ['id', info.id],
    ['namespace', info.namespace],
    ['period', isCallers ? period : (describeEnd(per) ?? period)],
    [isCallers ? 'guarded by' : 'identity', canonicalJson(info.identity)],
    ['normalised', normalised.join(', ')],
    ['content', info.content.join(', ')],
    ['volatile', fields.volatile.join(', ')],
    ['again', info.again ?? ''],
    ['ledger', hasLedger ? recordLine(record) : 'there is none'],
    ...hintsOf(info).map((hint) => ['mind', hint] as const),
  ];
  return lines.filter(([, text]) => text !== '').map(([name, text]) => `${name.padEnd(11)} ${text}`);
}

/** When a period without slots ends. */
function describeEnd(per: ContractPer): string | undefined {
  if (per === 'ever') return 'ever: it does not end';
  return typeof per === 'number' ? `${formatDuration(per)} from the first success` : undefined;
}

function recordLine(record: RecordInfo | undefined): string {
  if (record === undefined) return 'no record of it: the next call executes';
  return `${stateOf(record)}, changed ${relative(record.updatedAt)} (semel show ${record.id})`;
}

function sentences({ same, identity, content, ignored, conflict }: Comparison): readonly string[] {
  const value = (each: unknown) => (each === undefined ? 'nothing' : oneLine(JSON.stringify(each), 60));
  const lines = identity.flatMap(({ path, first, second, hint }) => [
    `  ${path || 'the args'}: ${value(first)}, then ${value(second)}`,
    ...(hint === null ? [] : [`    ${hint}.`]),
  ]);
  const besides = [
    ...(content.length === 0 ? [] : [`Worded differently, which changes no key: ${content.join(', ')}.`]),
    ...(ignored.length === 0 ? [] : [`Different, and ignored: ${ignored.join(', ')}.`]),
  ];
  if (conflict)
    return [
      'One key for two intents: the second call gets KEY_CONFLICT, because these differ:',
      ...lines,
      ...besides,
    ];
  if (same) return ['One intent: both calls have the same key.', ...besides];
  return ['Two intents: the keys differ because of', ...lines, ...besides];
}
