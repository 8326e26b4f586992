// Whether a storm left everything as it was promised: by the checker, and once more by counting effects.

import { check, type Logs, type Violation } from '../../support/checker/index.ts';
import type { LandedEffect } from '../../support/effect-server/index.ts';
import type { Calm } from './calm.ts';
import { policies } from './terms.ts';

/**
 * The same once more, without the checker: in the end each intent landed exactly once, unless the target refused it for
 * good or somebody chose otherwise.
 */
export function notOnce(
  effects: readonly LandedEffect[],
  { records, events }: Calm,
  movesClock: boolean,
): string[] {
  const landed = countBy(effects, ({ intent }) => intent);
  const chosen = new Set(
    events
      .filter(
        ({ type, detail }) =>
          (type === 'resolved' && (detail.act === 'runAgain' || detail.act === 'abandon')) ||
          // Said too early by a clock that was set forward; that it was said is on file.
          (movesClock && (type === 'cleared' || (type === 'resolved' && detail.act === 'notLanded'))),
      )
      .map(({ key }) => key),
  );
  return records.flatMap(({ key, contract, args, status, doubtFence, inDoubt }) => {
    const { intent } = JSON.parse(args ?? '{}') as { intent: string };
    const count = landed[intent] ?? 0;
    const isRefused = status === 'failed' && doubtFence === null && count === 0;
    // Under such a clock nobody can tell when a request is no longer on its way: the question stays open.
    if (movesClock && inDoubt) return [];
    const isOnce = isRefused || (policies[contract]?.repeats ? count >= 1 : count === 1);
    return isOnce || chosen.has(key) ? [] : [`${intent} landed ${count} times; its record is ${status}.`];
  });
}

/** Where there is no window a record expires at once and may be pruned; all others must be there at the end. */
export function checkAll(logs: Logs): readonly Violation[] {
  const isOf = (name: string) => ({
    key: (key: string) => key.startsWith(`${name}/`),
    intent: (intent: string) => intent.startsWith(`${name} `),
  });
  const windowless = isOf('write-idempotent');
  const part = (isWanted: boolean): Logs => ({
    ...logs,
    work: logs.work.filter((entry) => entry.kind === 'died' || windowless.intent(entry.intent) === isWanted),
    records: logs.records.filter(({ key }) => windowless.key(key) === isWanted),
    events: logs.events.filter(({ key }) => windowless.key(key) === isWanted),
    effects: logs.effects.filter(({ intent }) => windowless.intent(intent) === isWanted),
    expires: isWanted,
  });
  return [...check(part(false)), ...check(part(true))];
}

export function countBy<T>(items: readonly T[], nameOf: (item: T) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) counts[nameOf(item)] = (counts[nameOf(item)] ?? 0) + 1;
  return counts;
}
