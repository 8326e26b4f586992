// Finds arguments that some servers confuse: JSON readers in Go and .NET ignore case. If a policy names `amount`, a call with
// `Amount` would have one identity here and another one at the server.

import type { AnyPolicy } from '../../guard/index.ts';
import { foldCase } from '../protocol/messages.ts';

/** The names of one level, by their folded form, and the levels below. */
interface Level {
  readonly names: Map<string, Set<string>>;
  readonly below: Map<string, Level>;
}

/** Returns an argument's name and the policy field it is confused with. */
export function createSimilarArgumentFinder(
  policy: AnyPolicy,
): (args: unknown) => readonly [string, string] | undefined {
  const {
    identity = [],
    content = [],
    volatile = [],
    redact = [],
  } = typeof policy === 'string' ? {} : policy;
  const top = emptyLevel();
  for (const path of [identity, content, volatile, redact].flat()) {
    // A dot is a path separator, or part of the name.
    add(top, [path]);
    add(top, path.split('.'));
  }
  return (args) => (top.names.size === 0 ? undefined : near(args, top));
}

function emptyLevel(): Level {
  return { names: new Map(), below: new Map() };
}

function add(top: Level, steps: readonly string[]): void {
  let level = top;
  for (const step of steps) {
    const folded = foldCase(step);
    level.names.set(folded, (level.names.get(folded) ?? new Set()).add(step));
    const next = level.below.get(step) ?? emptyLevel();
    level.below.set(step, next);
    level = next;
  }
}

function near(value: unknown, level: Level): readonly [string, string] | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const isList = Array.isArray(value);
  for (const [name, member] of Object.entries(value)) {
    const meant = isList || name.length >= 100 ? undefined : level.names.get(foldCase(name));
    if (meant !== undefined && !meant.has(name)) return [name, [...meant][0] as string];
    const next = isList ? level : level.below.get(name);
    const found = next === undefined || (next.names.size === 0 && !isList) ? undefined : near(member, next);
    if (found !== undefined) return found;
  }
  return undefined;
}
