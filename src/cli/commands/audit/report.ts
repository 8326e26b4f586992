// What an audit found, for people: the sentence first, then the groups by how suspicious they are, then what to do.

import { formatDuration } from '../../../core/contract/duration.ts';
import { suspiciousFields } from '../../../core/contract/fields.ts';
import { printable, styled } from '../../render/print.ts';
import { cut } from '../../render/wrap.ts';
import { isFresh } from './fields.ts';
import { type Group, type Reuse, suspicion } from './finder.ts';
import type { Reading } from './reading.ts';

export interface Limits {
  readonly withinMs: number;
  readonly nearMs: number;
  readonly limit: number;
}

export function reportOf(reading: Reading, limits: Limits): readonly string[] {
  const { found } = reading;
  const { groups, reuses } = found;
  const lines = [styled('bold', sentence(reading, limits)), compared(reading, limits), ...left(reading)];
  if (groups.length > 0)
    lines.push('', ...groups.slice(0, limits.limit).flatMap((group) => groupLines(group)));
  const more = groups.length + found.moreGroups - limits.limit;
  if (more > 0) lines.push(`… and ${more} more groups (--limit ${groups.length})`, '');
  if (reuses.length > 0) {
    lines.push(
      styled('bold', reuseSentence(reuses.length + found.moreReuses)),
      ...reuses.slice(0, limits.limit).flatMap(reuseLines),
    );
  }
  const advice = adviceOf(reading);
  if (lines.at(-1) !== '') lines.push('');
  if (advice.length > 0) lines.push('What to do:', ...advice.map((line) => `  ${printable(line)}`));
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

export function sentence({ found }: Reading, { nearMs }: Pick<Limits, 'nearMs'>): string {
  const { calls, repeats, nearRestart } = found;
  const count = (value: number) => value.toLocaleString('en');
  if (repeats === 0) return `None of ${count(calls)} calls looks like a repeat.`;
  const near =
    nearRestart === 0 ? '' : `; ${count(nearRestart)} within ${formatDuration(nearMs)} of a restart`;
  return `${count(repeats)} of ${count(calls)} calls look like repeats${near}.`;
}

function compared({ chosen, found }: Reading, { withinMs }: Limits): string {
  const { same, time, key, guessed } = chosen;
  const guess = guessed.includes('same')
    ? ' (guessed; text such as `body` may differ; name the fields with --same)'
    : '';
  const by = key === undefined ? 'no key' : `the key ${key}${found.keyed === 0 ? ', which no call has' : ''}`;
  return printable(
    `The same: ${same.join(', ')}${guess}, within ${formatDuration(withinMs)} by ${time}; ${by}.`,
  );
}

function left({ notCompared, unreadable, unreadableLines, found, chosen }: Reading): readonly string[] {
  const lines: string[] = [];
  if (notCompared > 0)
    lines.push(
      printable(
        `Not compared, since they lack ${[...chosen.same, chosen.time].join(' or ')}: ${lineCount(notCompared)}.`,
      ),
    );
  if (unreadable > 0)
    lines.push(
      `Could not be read: ${lineCount(unreadable)} (${unreadableLines.join(', ')}${unreadable > unreadableLines.length ? ', …' : ''}).`,
    );
  if (found.forgotten > 0)
    lines.push(
      `There are too many different calls to remember: ${found.forgotten} were forgotten early. A shorter --within needs less.`,
    );
  const pairs = found.groups.filter(({ count }) => count === 2).length;
  if (found.repeats > found.calls * 0.4 && pairs > found.groups.length / 2)
    lines.push(
      'Nearly every call is there twice. If the log has a line for the start and one for the end, name one: --where status=done.',
    );
  return lines;
}

function lineCount(count: number): string {
  return count === 1 ? '1 line' : `${count} lines`;
}

function groupLines(group: Group): readonly string[] {
  const { count, name, shown, calls, keys, wordings, restart, nearRestart, afterFailure } = group;
  const why = [
    keys.size > 1 ? `under ${keys.size} keys: the key is wrong` : keys.size === 1 ? 'under one key' : '',
    wordings.size > 1 ? `in ${wordings.size} wordings` : '',
    nearRestart > 0
      ? `${nearRestart} right after a ${restart?.by === 'gap' ? 'gap' : 'restart'} (line ${restart?.line})`
      : '',
    afterFailure > 0 ? `${afterFailure} after a failure` : '',
  ].filter((text) => text !== '');
  const [first, ...rest] = calls;
  const times = rest.map(({ line, at }, n) => `+${formatDuration(at - (calls[n]?.at ?? at))} line ${line}`);
  const more = count > calls.length ? `, … ${count - calls.length} more` : '';
  const style = suspicion(group) >= 8 ? 'red' : 'yellow';
  return [
    `${styled(style, `${count}×`)} ${printable(name)}  ${printable(cut(shown, 100))}`,
    `   ${first === undefined ? '' : `${new Date(first.at).toISOString()} line ${first.line}`}, ${times.join(', ')}${more}`,
    ...(why.length === 0 ? [] : [`   ${why.join('; ')}`]),
    '',
  ];
}

function reuseSentence(count: number): string {
  return `${count === 1 ? '1 key was' : `${count} keys were`} used for different calls: the second may have been suppressed.`;
}

function reuseLines({ key, count, calls }: Reuse): readonly string[] {
  return [
    `${count}× ${printable(cut(key, 80))}`,
    ...calls.slice(0, 3).map(({ line, shown }) => `   line ${line}  ${printable(cut(shown, 100))}`),
  ];
}

interface Suggestion {
  readonly contract: string;
  readonly identity: readonly string[];
  readonly content: readonly string[];
}

/** The contract lines that would have made one intent of these. */
export function suggestionsOf({ found, chosen, fieldsOf }: Reading): readonly Suggestion[] {
  const tools = [...new Set(found.groups.map(({ name }) => name))].slice(0, 5);
  return tools.map((contract) => {
    const inArgs = chosen.args === undefined ? undefined : fieldsOf.get(contract);
    const named = chosen.same
      .filter((path) => path !== chosen.name && path !== chosen.args)
      .map((path) =>
        chosen.args !== undefined && path.startsWith(`${chosen.args}.`)
          ? path.slice(chosen.args.length + 1)
          : path,
      );
    if (named.length > 0) return { contract, identity: named, content: [] };
    const fields = (inArgs ?? []).filter((field) => !isFresh(field));
    const content = suspiciousFields({ identity: fields, content: [], volatile: [] }, []);
    return { contract, identity: fields.filter((field) => !content.includes(field)), content };
  });
}

function adviceOf(reading: Reading): readonly string[] {
  const { groups, reuses } = reading.found;
  const lines = suggestionsOf(reading)
    .filter(({ identity }) => identity.length > 0)
    .map(
      ({ contract, identity }) =>
        `${contract === '' ? '' : `${contract}: `}identity: [${identity.map((field) => `'${field}'`).join(', ')}]`,
    );
  if (lines.length > 0)
    lines.unshift('Name what makes the intent, in the contract of each tool (docs/guides/keys.md):');
  if (groups.some(({ keys }) => keys.size > 1))
    lines.push('Keys that differ for the same call hold something fresh: let the contract derive them.');
  if (reuses.length > 0)
    lines.push('A key that two different calls share lacks a field: add what differs to the identity.');
  return lines;
}
