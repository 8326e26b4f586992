// Series and their text in Prometheus's exposition format 0.0.4. Pure.

export type Labels = Readonly<Record<string, string>>;

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  samples(): Iterable<Sample>;
}

export interface Sample {
  /** `_bucket`, `_sum` or `_count` of a histogram. */
  readonly suffix?: string;
  readonly labels: Labels;
  readonly value: number;
}

/** One series of a counter. Keep it in hot code: looking it up costs more than counting. */
export interface Count {
  value: number;
}

export interface Counter extends Family {
  of(labels: Labels): Count;
}

export interface Observed {
  observe(value: number): void;
}

export interface Histogram extends Family {
  of(labels: Labels): Observed;
}

/** Bucket limits for calls over a network, in seconds. */
export const buckets: readonly number[] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

export function counter(name: string, help: string): Counter {
  const series = new Map<string, { readonly labels: Labels; value: number }>();
  return {
    ...{ name, help, type: 'counter' },
    of(labels) {
      const id = JSON.stringify(labels);
      const found = series.get(id) ?? { labels, value: 0 };
      series.set(id, found);
      return found;
    },
    samples: () => series.values(),
  };
}

export function histogram(name: string, help: string, bounds: readonly number[] = buckets): Histogram {
  const series = new Map<string, ReturnType<typeof create>>();
  const create = (labels: Labels) => ({
    labels,
    counts: new Array<number>(bounds.length + 1).fill(0),
    sum: 0,
    observe(value: number) {
      let slot = 0;
      while (slot < bounds.length && value > (bounds[slot] as number)) slot += 1;
      this.counts[slot] = (this.counts[slot] as number) + 1;
      this.sum += value;
    },
  });
  return {
    ...{ name, help, type: 'histogram' },
    of(labels) {
      const id = JSON.stringify(labels);
      const found = series.get(id) ?? create(labels);
      series.set(id, found);
      return found;
    },
    *samples() {
      for (const { labels, counts, sum } of series.values()) {
        let count = 0;
        for (const [n, each] of counts.entries()) {
          count += each;
          const le = n === bounds.length ? '+Inf' : String(bounds[n]);
          yield { suffix: '_bucket', labels: { ...labels, le }, value: count };
        }
        yield { suffix: '_sum', labels, value: sum };
        yield { suffix: '_count', labels, value: count };
      }
    },
  };
}

export function gauge(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, help, type: 'gauge', samples: () => samples };
}

export const contentType = 'text/plain; version=0.0.4; charset=utf-8';

/** `isShown` chooses series by their labels: a reader may be confined to one namespace. */
export function expose(
  families: readonly Family[],
  isShown: (labels: Labels) => boolean = () => true,
): string {
  const lines: string[] = [];
  for (const { name, help, type, samples } of families) {
    const shown = [...samples()].filter(({ labels }) => isShown(labels));
    if (shown.length === 0) continue;
    lines.push(
      `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
      `# TYPE ${name} ${type}`,
    );
    for (const { suffix = '', labels, value } of shown)
      lines.push(`${name}${suffix}${toText(labels)} ${value}`);
  }
  return lines.map((line) => `${line}\n`).join('');
}

function toText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeValue(value)}"`);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

function escapeValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
