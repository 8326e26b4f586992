// Rounds and medians. Contestants run interleaved in one process, round after round, so that whatever else the
// machine does falls on all of them; what is printed are medians, and ratios against the limit.

export interface Contestant {
  readonly name: string;
  /** Does its work and answers how many operations that was, or the rate itself where another program took the time. */
  readonly run: (round: number) => Promise<number | OwnRate> | number;
}

export interface OwnRate {
  readonly perSecond: number;
}

export interface Figure {
  readonly name: string;
  /** Operations per second, median over the rounds. */
  readonly perSecond: number;
  readonly lowest: number;
  readonly highest: number;
}

export async function measure(
  rounds: number,
  contestants: readonly Contestant[],
): Promise<readonly Figure[]> {
  const rates = new Map(contestants.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < rounds; round += 1) {
    // Each round starts with another contestant, so that none always runs on a warm or a tired machine.
    const order = contestants.map(
      (_, index) => contestants[(index + round) % contestants.length] as Contestant,
    );
    for (const { name, run } of order) {
      const startedAt = process.hrtime.bigint();
      const answer = await run(round);
      const seconds = Number(process.hrtime.bigint() - startedAt) / 1e9;
      rates.get(name)?.push(typeof answer === 'number' ? answer / seconds : answer.perSecond);
    }
  }
  return contestants.map(({ name }) => {
    const sorted = (rates.get(name) ?? []).toSorted((a, b) => a - b);
    return {
      name,
      perSecond: median(sorted),
      lowest: sorted[0] ?? Number.NaN,
      highest: sorted.at(-1) ?? Number.NaN,
    };
  });
}

export function median(sorted: readonly number[]): number {
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/** By its whole name. */
export function rateOf(figures: readonly Figure[], name: string): number {
  return figures.find((figure) => figure.name === name)?.perSecond ?? Number.NaN;
}

/** The time that 99 of 100 did not exceed. */
export function p99(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN;
}
