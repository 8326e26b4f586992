// Overview: what was executed, what was prevented, what is open, and which tools are the busiest.

import { useEffect } from 'preact/hooks';
import type { OpenCounts, Stats } from '../answers.ts';
import { useData } from '../api.ts';
import { Chart } from '../chart.tsx';
import { Ago, Empty, Head, Load, Text } from '../parts.tsx';
import { linkTo } from '../place.ts';
import { many, shellWord } from '../text.ts';
import type { ViewProps } from './view.ts';

const ranges = [
  ['24h', 'the last 24 hours', '24h --by hour'],
  ['7d', 'the last 7 days', '7d'],
  ['30d', 'the last 30 days', '30d'],
] as const;

export function Overview({ namespace, params }: ViewProps) {
  const [range, words, flags] = ranges.find(([name]) => name === params.range) ?? ranges[1];
  const tz = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const loaded = useData<Stats>('/v1/stats', { range, tz }, namespace);
  const open = useData<OpenCounts>('/v1/summary', {}, namespace);
  const isCounting = loaded.data?.coverage.isCounting === true;
  useEffect(() => {
    if (!isCounting) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) loaded.refresh();
    }, 700);
    return () => clearInterval(timer);
  }, [isCounting]);
  return (
    <>
      <Head
        title="Overview"
        command={`semel stats --since ${flags} --tz ${tz} --namespace ${shellWord(namespace)}`}
      >
        <nav class="tabs" aria-label="Time">
          {ranges.map(([name]) => (
            <a
              key={name}
              href={linkTo('/overview', namespace, { range: name })}
              aria-current={name === range ? 'page' : undefined}
            >
              {name}
            </a>
          ))}
        </nav>
      </Head>
      <Load loaded={loaded} what="the counts">
        {(stats) => {
          const { totals, contracts, coverage } = stats;
          const busiest = Math.max(1, ...contracts.map(({ executed, saved }) => executed + saved));
          return (
            <>
              <p class="headline">
                <strong>{totals.saved.toLocaleString('en')}</strong> duplicate{' '}
                {totals.saved === 1 ? 'effect' : 'effects'} prevented in {words}
              </p>
              <dl class="tiles">
                <div>
                  <dt>executed</dt>
                  <dd>{totals.executed.toLocaleString('en')}</dd>
                </div>
                <div>
                  <dt>replayed</dt>
                  <dd>{totals.replayed.toLocaleString('en')}</dd>
                </div>
                <div class={(open.data?.inDoubt ?? 0) > 0 ? 'warn' : ''}>
                  <dt>in doubt now</dt>
                  <dd>
                    <a href={linkTo('/doubts', namespace)}>
                      {open.data?.inDoubt.toLocaleString('en') ?? '…'}
                    </a>
                    {open.data?.oldestDoubtAt !== undefined && (
                      <small>
                        oldest <Ago at={open.data.oldestDoubtAt} />
                      </small>
                    )}
                  </dd>
                </div>
                <div>
                  <dt>in flight now</dt>
                  <dd>{open.data?.inFlight.toLocaleString('en') ?? '…'}</dd>
                </div>
                {totals.duplicates > 0 && (
                  <div class="bad">
                    <dt>landed twice</dt>
                    <dd>{totals.duplicates.toLocaleString('en')}</dd>
                  </div>
                )}
              </dl>
              {coverage.looked === 0 && !coverage.isCounting ? (
                <Empty title={`There are no records in ${namespace} yet.`}>
                  <p>Guard a tool or a job, and what it does appears here.</p>
                </Empty>
              ) : (
                <>
                  <Chart stats={stats} />
                  <h2>Busiest tools</h2>
                  {contracts.length === 0 ? (
                    <Empty title={`No tool was called in ${words}.`} />
                  ) : (
                    <div class="scroll">
                      <table class="tools">
                        <thead>
                          <tr>
                            <th>tool</th>
                            <th class="number">executed</th>
                            <th class="number">prevented</th>
                            <th class="number">in doubt</th>
                            <th class="number">conflicts</th>
                            <th class="share">
                              <span class="hidden">share</span>
                            </th>
                          </tr>
                        </thead>
                        <tbody>
                          {contracts.slice(0, 20).map((row) => (
                            <tr key={row.contract}>
                              <td>
                                <Text text={row.contract} max={64} />
                              </td>
                              <td class="number">{row.executed.toLocaleString('en')}</td>
                              <td class="number">{row.saved.toLocaleString('en')}</td>
                              <td class="number">
                                {row.inDoubt === 0 ? (
                                  0
                                ) : (
                                  <a data-row href={linkTo('/doubts', namespace, { tool: row.contract })}>
                                    {row.inDoubt.toLocaleString('en')}
                                  </a>
                                )}
                              </td>
                              <td class="number">{row.conflicts.toLocaleString('en')}</td>
                              <td class="share">
                                <meter
                                  aria-label={`calls of ${row.contract} beside the busiest tool`}
                                  min={0}
                                  max={busiest}
                                  value={row.executed + row.saved}
                                />
                              </td>
                            </tr>
                          ))}
                        </tbody>
                      </table>
                    </div>
                  )}
                </>
              )}
              <p class="notice" role="status">
                {coverage.isCounting ? 'Still counting: so far ' : 'Counted from '}the{' '}
                {coverage.isNewest ? 'newest' : 'first'} {many(coverage.looked, 'record')}
                {coverage.since === undefined
                  ? ', all there are.'
                  : coverage.isNewest
                    ? `, begun since ${new Date(coverage.since).toLocaleString()}.`
                    : ' in the order of their keys: this store has no order by time.'}
              </p>
            </>
          );
        }}
      </Load>
    </>
  );
}
