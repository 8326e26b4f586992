// Jobs: a strip of days for each, so that a missed or a failed one is seen at once.

import type { JobSlot, Jobs } from '../answers.ts';
import { useData } from '../api.ts';
import { Empty, Head, Load, Text } from '../parts.tsx';
import { linkTo } from '../place.ts';
import { clock, many, shellWord } from '../text.ts';
import type { ViewProps } from './view.ts';

const worst = ['in doubt', 'failed', 'abandoned', 'running', 'released', 'succeeded'];

function worstOf(slots: readonly JobSlot[]): string {
  return worst.find((state) => slots.some((slot) => slot.state === state)) ?? 'none';
}

export function JobsView({ namespace }: ViewProps) {
  const loaded = useData<Jobs>('/v1/jobs', { days: '14' }, namespace);
  return (
    <>
      <Head title="Jobs" command={`semel ls --key run. --namespace ${shellWord(namespace)}`}>
        <p class="lead">The slots of the last 14 days (UTC), one column per day.</p>
      </Head>
      <Load loaded={loaded} what="the jobs">
        {({ dates, jobs, isCut }) =>
          jobs.length === 0 ? (
            <Empty title={`There are no jobs in ${namespace}.`}>
              <p>
                Guard one with <code>semel run blog --per day -- ./agent.sh</code>, or with{' '}
                <code>semel.job</code>.
              </p>
            </Empty>
          ) : (
            <>
              <div class="scroll">
                <table class="jobs">
                  <thead>
                    <tr>
                      <th>job</th>
                      <th>per</th>
                      {dates.map((date) => (
                        <th key={date} class="day" title={date}>
                          {date.slice(8)}
                        </th>
                      ))}
                      <th>now</th>
                    </tr>
                  </thead>
                  <tbody>
                    {jobs.map(({ contract, job, per, days }) => {
                      const first = days.findIndex(({ slots }) => slots.length > 0);
                      const running = days.flatMap(({ slots }) =>
                        slots.filter(({ state }) => state === 'running'),
                      );
                      return (
                        <tr key={contract}>
                          <th scope="row">
                            <Text text={job} max={64} />
                          </th>
                          <td class="dim">{per ?? '—'}</td>
                          {days.map(({ date, slots, isCut: hasMore }, n) => (
                            <td key={date} class="day">
                              <Day
                                {...{ namespace, contract, date, slots }}
                                hasMore={hasMore === true}
                                isMissed={
                                  per === 'day' &&
                                  slots.length === 0 &&
                                  first >= 0 &&
                                  n > first &&
                                  n < days.length - 1
                                }
                              />
                            </td>
                          ))}
                          <td>
                            {running.length === 0 ? (
                              <span class="dim">idle</span>
                            ) : (
                              many(running.length, 'run')
                            )}
                          </td>
                        </tr>
                      );
                    })}
                  </tbody>
                </table>
              </div>
              <p class="legend">
                {['succeeded', 'failed', 'in-doubt', 'running', 'missed'].map((state) => (
                  <span key={state}>
                    <span class={`slot ${state}`} aria-hidden="true" /> {state.replace('-', ' ')}
                  </span>
                ))}
                <span>
                  <span class="slot succeeded late" aria-hidden="true" /> late: began after its day
                </span>
              </p>
              {isCut && <p class="notice">The first 50 jobs are shown.</p>}
            </>
          )
        }
      </Load>
    </>
  );
}

function Day(props: {
  readonly namespace: string;
  readonly contract: string;
  readonly date: string;
  readonly slots: readonly JobSlot[];
  readonly hasMore: boolean;
  readonly isMissed: boolean;
}) {
  const { namespace, contract, date, slots, hasMore, isMissed } = props;
  const [only] = slots;
  if (only === undefined)
    return (
      <span
        class={`slot ${isMissed ? 'missed' : 'none'}`}
        role="img"
        aria-label={`${date}: ${isMissed ? 'missed' : 'no slot'}`}
      />
    );
  const state = worstOf(slots);
  const count = `${slots.length}${hasMore ? '+' : ''}`;
  const words =
    slots.length === 1
      ? `${only.slot}: ${state}, started ${clock(only.startedAt)}${only.attempts > 1 ? `, ${only.attempts} attempts` : ''}${only.isLate ? ', late' : ''}`
      : `${date}: ${count} slots, the worst ${state}`;
  const href =
    slots.length === 1
      ? linkTo('/record', namespace, { key: only.key })
      : linkTo('/search', namespace, { q: `${contract}/${date}` });
  const isLate = slots.some((slot) => slot.isLate);
  return (
    <a
      class={`slot ${state.replace(' ', '-')} ${isLate ? 'late' : ''}`}
      data-row
      href={href}
      title={words}
      aria-label={words}
    >
      {slots.length > 1 ? count : ''}
    </a>
  );
}
