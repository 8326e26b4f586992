// Bars and lines over time. The table below a chart says the same to people who cannot see it.

import { useEffect, useRef, useState } from 'preact/hooks';
import UPlot from 'uplot';
import type { Stats } from './answers.ts';

const series = [
  ['executed', '--chart-1'],
  ['duplicates prevented', '--chart-2'],
  ['in doubt', '--chart-3'],
  ['in flight', '--chart-4'],
] as const;

/** Prevented on top of executed: the bar of both is drawn first, and that of the executed over it. */
function dataOf({ slots, inFlight }: Stats): UPlot.AlignedData {
  return [
    slots.map(({ startsAt }) => Date.parse(startsAt) / 1_000),
    slots.map(({ executed, saved }) => executed + saved),
    slots.map(({ executed }) => executed),
    slots.map(({ inDoubt }) => inDoubt),
    slots.map((_, n) => inFlight[n] ?? 0),
  ];
}

/** As many labels as fit. */
function thin(all: number[], width: number): number[] {
  const step = Math.max(1, Math.ceil((all.length * 58) / Math.max(1, width)));
  return all.filter((_, n) => (all.length - 1 - n) % step === 0);
}

function label(at: number, by: Stats['by']): string {
  const date = new Date(at * 1_000);
  return by === 'hour'
    ? `${String(date.getHours()).padStart(2, '0')}:00`
    : date.toLocaleDateString('en', { month: 'short', day: 'numeric' });
}

export function Chart({ stats }: { readonly stats: Stats }) {
  const place = useRef<HTMLDivElement>(null);
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const again = () => setTheme((n) => n + 1);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', again);
    addEventListener('semel-theme', again);
    return () => {
      dark.removeEventListener('change', again);
      removeEventListener('semel-theme', again);
    };
  }, []);
  const plot = useRef<UPlot | undefined>(undefined);
  useEffect(() => {
    const node = place.current;
    if (node === null) return undefined;
    const css = getComputedStyle(node);
    const color = (name: string) => css.getPropertyValue(name).trim();
    const bars = UPlot.paths.bars?.({ size: [0.7, 48] });
    const slotSeconds = stats.by === 'day' ? 86_400 : 3_600;
    const axis = {
      stroke: color('--dim'),
      grid: { stroke: color('--line'), width: 1 },
      ticks: { show: false },
      font: '11px system-ui, sans-serif',
    };
    const made = new UPlot(
      {
        width: node.clientWidth,
        height: 200,
        legend: { show: false },
        cursor: { show: false },
        padding: [8, 8, 0, 0],
        scales: {
          x: { range: (_, min, max) => [min - slotSeconds * 0.6, max + slotSeconds * 0.6] },
          y: { range: (_, __, max) => [0, Math.max(4, max * 1.1)] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            splits: (self) => thin(self.data[0] as number[], node.clientWidth),
            values: (_, splits) => splits.map((at) => label(at, stats.by)),
          },
          {
            ...axis,
            size: 44,
            incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 100_000],
          },
        ],
        series: [
          {},
          ...['--chart-2', '--chart-1'].map((name) => ({
            fill: color(name),
            ...(bars && { paths: bars }),
            width: 0,
            points: { show: false },
          })),
          ...['--chart-3', '--chart-4'].map((name) => ({
            stroke: color(name),
            width: 2,
            points: { show: true, size: 5, fill: color(name) },
          })),
        ],
      },
      dataOf(stats),
      node,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: node.clientWidth, height: 200 }));
    watch.observe(node);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [theme, stats.by, stats.slots.length]);
  useEffect(() => plot.current?.setData(dataOf(stats)), [stats]);
  return (
    <figure class="chart">
      <figcaption>
        {series.map(([label], n) => (
          <span key={label} class={`key-${n + 1}`}>
            {label}
          </span>
        ))}
      </figcaption>
      <div ref={place} class="plot" aria-hidden="true" />
      <details>
        <summary>As a table</summary>
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th>{stats.by}</th>
                {series.map(([label]) => (
                  <th key={label} class="number">
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {stats.slots.map((slot, n) => (
                <tr key={slot.slot}>
                  <td>{slot.slot}</td>
                  <td class="number">{slot.executed}</td>
                  <td class="number">{slot.saved}</td>
                  <td class="number">{slot.inDoubt}</td>
                  <td class="number">{stats.inFlight[n] ?? 0}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
