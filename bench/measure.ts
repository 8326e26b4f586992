// Rounds, medians, CPU. Contestants run in turn in one process, round after round, so that whatever else the machine
// does hits all of them; a ratio is the median of the ratios of the rounds.

export interface Contestant {
  readonly name: string;
  /** Does its work and returns how many operations that was. */
  readonly run: () => Promise<number> | number;
  /** Other processes do the work: this one's CPU time says nothing. */
  readonly isElsewhere?: boolean;
}

export interface Figure {
  readonly name: string;
  /** One for each round: operations per second, and CPU time of this process per operation in microseconds. */
  readonly rates: readonly number[];
  readonly cpuMicros: readonly number[];
}

export async function measure(
  rounds: number,
  contestants: readonly Contestant[],
): Promise<readonly Figure[]> {
  const figures = contestants.map(({ name }) => ({ name, rates: [] as number[], cpuMicros: [] as number[] }));
  // What runs in this process is compiled before it is measured.
  for (const { run, isElsewhere } of contestants) if (!isElsewhere) await run();
  for (let round = 0; round < rounds; round += 1) {
    for (let n = 0; n < contestants.length; n += 1) {
      // Each round starts with another contestant: none always runs on a warm or a tired machine.
      const index = (n + round) % contestants.length;
      const { run, isElsewhere = false } = contestants[index] as Contestant;
      const cpuBefore = process.cpuUsage();
      const startedAt = performance.now();
      const count = await run();
      const seconds = (performance.now() - startedAt) / 1_000;
      const { user, system } = process.cpuUsage(cpuBefore);
      figures[index]?.rates.push(count / seconds);
      figures[index]?.cpuMicros.push(isElsewhere ? Number.NaN : (user + system) / count);
    }
  }
  return figures;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const [low, high] = [sorted[middle - 1 + (sorted.length % 2)], sorted[middle]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
}

/** Of several under the line, the best of each round counts. */
export function ratio(figures: readonly Figure[], over: string, ...under: readonly string[]): number {
  const best = find(figures, under[0] as string).rates.map((_, round) =>
    Math.max(...under.map((name) => find(figures, name).rates[round] ?? Number.NaN)),
  );
  return median(find(figures, over).rates.map((rate, round) => rate / (best[round] ?? Number.NaN)));
}

export function find(figures: readonly Figure[], name: string): Figure {
  const found = figures.find((figure) => figure.name === name);
  if (found === undefined) throw new Error(`${name} was not measured.`);
  return found;
}

/** The time that half of them did not exceed. */
export const p50 = (times: readonly number[]): number => percentile(times, 0.5);

/** The time that 99 of 100 did not exceed. */
export const p99 = (times: readonly number[]): number => percentile(times, 0.99);

function percentile(times: readonly number[], part: number): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * part) - 1] ?? Number.NaN;
}
