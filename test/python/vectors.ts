// Args of all kinds with their keys, for clients in other languages: the same seed gives the same vectors.

import { createSemel } from '../../src/index.ts';

export interface Vector {
  readonly args: Readonly<Record<string, unknown>>;
  readonly key: string;
}

const texts = ['', 'a', 'é', 'é', '😀', '"\\/', '\n\t\u0000', '\u2028', 'ﬁ', '1', 'null', 'ß'.repeat(40)];
const numbers = [0, -1, 1.5, 0.1, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 9007199254740991, -0.000001];

/** A small generator of its own: what it gives must not depend on a version of anything. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

export async function makeVectors(seed: number, count: number): Promise<readonly Vector[]> {
  const random = createRandom(seed);
  const semel = createSemel({ store: 'memory:', namespace: 'vectors', onWarning: () => undefined });
  const tool = semel.tool({
    name: 'vector',
    effect: 'write-non-idempotent',
    per: 'ever',
    run: (_: Record<string, unknown>) => undefined,
  });
  const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T;
  const value = (depth: number): unknown => {
    const kind = random(depth > 3 ? 5 : 8);
    if (kind === 0) return null;
    if (kind === 1) return random(2) === 0;
    if (kind === 2) return pick(numbers);
    if (kind === 3) return random(2 ** 31) / 2 ** random(40);
    if (kind === 4) return pick(texts) + pick(texts);
    if (kind === 5) return Array.from({ length: random(4) }, () => value(depth + 1));
    return fields(depth + 1);
  };
  const fields = (depth: number): Record<string, unknown> =>
    Object.fromEntries(Array.from({ length: random(5) }, () => [`${pick(texts)}${random(9)}`, value(depth)]));
  const vectors: Vector[] = [];
  for (let at = 0; at < count; at += 1) {
    const args = { id: at, ...fields(0) };
    vectors.push({ args, key: (await semel.keyOf(tool, args)).key });
  }
  await semel.close();
  return vectors;
}
