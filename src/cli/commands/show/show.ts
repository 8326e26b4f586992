// `semel show`: everything known about one record, and what to do next.

import { shownOwner } from '../../../jobs/index.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import { namedRecord } from '../../args/named.ts';
import { namespacesFor } from '../../args/namespaces.ts';
import { isAgent } from '../../caller.ts';
import { command } from '../../command.ts';
import { oneLine, print, printable, printJson, relative, styled } from '../../render/print.ts';
import {
  ageText,
  argsText,
  driftText,
  isFailedRun,
  nameOf,
  remoteRefText,
  stateCell,
} from '../../render/state.ts';
import { usageError } from '../../usage.ts';
import { type AttemptInfo, attemptsOf } from './attempts.ts';
import { type NextStep, nextSteps, withoutVerdicts } from './next.ts';
import { type Sent, sentBy } from './sent.ts';
import { type Moment, timelineOf } from './timeline.ts';

export default command({
  name: 'show',
  takes: '<id> [options]',
  about: `Shows a record, its attempts, its timeline, the evidence, and what to type next. Name a record by its id, by the first
characters of its id (at least four), by its ref (id@fence) or by its key.`,
  flags: {},
  examples: [
    'semel show 7f3a0c',
    'semel show blog/2026-06-19/k4q0…',
    'semel show 7f3a0c --json | jq .timeline',
  ],
  async run({ values, positionals }) {
    const [named] = positionals;
    if (named === undefined || positionals.length > 1)
      throw usageError('show', 'expects one record', 'Write: semel show <id>. `semel ls` lists them.');
    await using ledger = namespacesFor(values);
    // The fence of a ref is ignored: the user wants to see the current state.
    const name = named.includes('/') ? named : (named.split('@')[0] as string);
    const record = await namedRecord('show', ledger, name);
    const history = await ledger.in(record.namespace).records.history(record.key);
    const sent = sentBy(record, await ledger.read(record.namespace, record.key));
    const now = Date.now();
    const attempts = attemptsOf(record, history);
    const timeline = timelineOf(record, history, now);
    const steps = nextSteps(record, await ledger.optionsFor(record.namespace), now);
    const next = isAgent() ? withoutVerdicts(steps) : steps;
    const drift = [...new Set(history.flatMap(({ detail }) => (detail.drift as string[] | undefined) ?? []))];
    if (values.json) printJson({ record, sent, drift, attempts, timeline, next, history });
    else
      print(
        ...header(record),
        ...evidence(record, sent, drift),
        ...section('Attempts', attemptLines(record, attempts)),
        ...section('Timeline', timelineLines(timeline)),
        ...section('Next', nextLines(next)),
      );
    return 0;
  },
});

function header(record: RecordInfo): readonly string[] {
  const { text, style } = stateCell(record);
  const state = style === undefined ? text : styled(style, text);
  return [`${record.ref}  ${printable(nameOf(record))}  ${state} ${ageText(record)}`];
}

function evidence(record: RecordInfo, sent: Sent | undefined, drift: readonly string[]): readonly string[] {
  const { error, caller, conversation, turn, toolCallId, run } = record;
  const asker = Object.entries({ caller, conversation, turn, 'tool call': toolCallId, run })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} ${value}`);
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['key', record.key],
    ['namespace', record.namespace],
    ['class', `${record.effect}, version ${record.version}`],
    ['context', asker.length === 0 ? undefined : asker.join(', ')],
    ['once more', record.again],
    ['args', record.args === undefined ? 'not stored' : argsText(record, 2000)],
    ['drift', drift.length === 0 ? undefined : `replays were worded differently in: ${driftText(drift)}`],
    ['result', resultOf(record)],
    ['error', error && (isFailedRun(record) ? error.message : `${error.code}: ${error.message}`)],
    ['to do', error?.next],
    ['remote ref', remoteRefText(record)],
    ['sent as', sent === undefined ? record.providerKey : `${sent.key}  mark ${sent.mark}`],
  ];
  return rows.flatMap(([name, text]) => (text === undefined ? [] : [line(name, text)]));
}

function line(name: string, text: string): string {
  return `  ${styled('dim', name.padEnd(10))}  ${printable(text)}`;
}

function resultOf(record: RecordInfo): string | undefined {
  if (record.status !== 'succeeded') return undefined;
  if (record.omitted !== undefined) return `not stored: ${record.omitted}`;
  if (record.value !== undefined) return oneLine(record.value, 2000);
  return 'undefined';
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ['', styled('bold', title), ...lines];
}

function attemptLines(record: RecordInfo, attempts: readonly AttemptInfo[]): readonly string[] {
  return [
    `  ${record.attempts} in total, the last by ${printable(shownOwner(record.owner))}`,
    ...attempts.flatMap(({ at, fence, owner, what, tail }) => [
      printable(`  fence ${fence}${owner === undefined ? '' : ` by ${owner}`}: ${what} (${relative(at)})`),
      ...tail.map((text) => `    ${styled('dim', '|')} ${printable(text)}`),
    ]),
  ];
}

function timelineLines(timeline: readonly Moment[]): readonly string[] {
  return timeline.map(({ at, what, alarm }) => {
    const text = printable(what);
    return `  ${at.toISOString()}  ${relative(at).padStart(12)}  ${alarm ? styled('red', text) : text}`;
  });
}

function nextLines(next: readonly NextStep[]): readonly string[] {
  return next.flatMap(({ command: words, why }) =>
    words === undefined
      ? [`  ${printable(why)}`]
      : [`  ${styled('bold', printable(words))}`, `      ${printable(why)}`],
  );
}
