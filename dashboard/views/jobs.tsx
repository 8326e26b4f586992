// Jobs: a strip of days for each, so that a missed or a failed one is seen at once. A day with several slots opens as a list.

import type { JobSlot, Jobs } from '../answers.ts';
import { useData } from '../api.ts';
import { Badge, Empty, Head, Load, Text } from '../parts.tsx';
import { linkTo } from '../place.ts';
import { clock, many, shellWord } from '../text.ts';
import type { ViewProps } from './view.ts';

const worst = ['in doubt', 'failed', 'abandoned', 'running', 'released', 'succeeded'];

function worstOf(slots: readonly JobSlot[]): string {
  return worst.find((state) => slots.some((slot) => slot.state === state)) ?? 'none';
}

export function JobsView({ namespace, params }: ViewProps) {
  const loaded = useData<Jobs>('/v1/jobs', { days: '14' }, namespace);
  return (
    <>
      <Head
        title="Jobs"
        command={`semel ls --key run. --newer 15d -n 1000 --namespace ${shellWord(namespace)}`}
      >
        <p class="lead">The slots of the last 14 days, each on its day in the job's own time zone.</p>
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
                      const running = days.flatMap(({ slots }) =>
                        slots.filter(({ state }) => state === 'running'),
                      );
                      return (
                        <tr key={contract}>
                          <th scope="row">
                            <Text text={job} max={64} />
                          </th>
                          <td class="dim">{per ?? '—'}</td>
                          {days.map(({ date, slots, missed, isCut: hasMore }) => (
                            <td key={date} class="day">
                              <Day
                                {...{ namespace, contract, date, slots }}
                                hasMore={hasMore === true}
                                missed={missed}
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
                  <span class="slot succeeded late" aria-hidden="true" /> late: began when its slot was over
                </span>
              </p>
              <SlotList jobs={jobs} namespace={namespace} contract={params.job} date={params.day} />
              {isCut && <p class="notice">The first 50 jobs are shown.</p>}
            </>
          )
        }
      </Load>
    </>
  );
}

/** The slots of one job on one day. */
function SlotList(props: {
  readonly jobs: Jobs['jobs'];
  readonly namespace: string;
  readonly contract: string | undefined;
  readonly date: string | undefined;
}) {
  const { jobs, namespace, contract, date } = props;
  const job = jobs.find((each) => each.contract === contract);
  const day = job?.days.find((each) => each.date === date);
  if (job === undefined || day === undefined) return null;
  return (
    <section>
      <h2>
        <Text text={job.job} max={64} /> on {day.date}
      </h2>
      {day.missed > 0 && <p class="notice">{many(day.missed, 'slot')} without a run.</p>}
      <ul class="rows">
        {day.slots.map((slot) => (
          <li key={slot.key}>
            <a class="row" data-row href={linkTo('/record', namespace, { key: slot.key })}>
              <span class="ref">
                <Text text={slot.slot} max={80} />
              </span>
              <span class="what">started {clock(slot.startedAt)}</span>
              <span class="facts">
                {slot.isLate && <span>late</span>}
                {slot.attempts > 1 && <span>{many(slot.attempts, 'attempt')}</span>}
                <Badge state={slot.state} />
              </span>
            </a>
          </li>
        ))}
      </ul>
      {day.isCut && <p class="notice">Not all of them were read.</p>}
    </section>
  );
}

function Day(props: {
  readonly namespace: string;
  readonly contract: string;
  readonly date: string;
  readonly slots: readonly JobSlot[];
  readonly hasMore: boolean;
  readonly missed: number;
}) {
  const { namespace, contract, date, slots, hasMore, missed } = props;
  const [only] = slots;
  const missedWords = missed === 1 ? 'missed' : many(missed, 'slot missed', 'slots missed');
  if (only === undefined)
    return (
      <span
        class={`slot ${missed > 0 ? 'missed' : 'none'}`}
        role="img"
        title={`${date}: ${missed > 0 ? missedWords : 'no slot'}`}
        aria-label={`${date}: ${missed > 0 ? missedWords : 'no slot'}`}
      />
    );
  const state = worstOf(slots);
  const count = `${slots.length}${hasMore ? '+' : ''}`;
  const words =
    slots.length === 1
      ? `${only.slot}: ${state}, started ${clock(only.startedAt)}${only.attempts > 1 ? `, ${only.attempts} attempts` : ''}${only.isLate ? ', late' : ''}`
      : `${date}: ${count} slots, the worst ${state}${missed > 0 ? `, ${missedWords}` : ''}`;
  const href =
    slots.length === 1
      ? linkTo('/record', namespace, { key: only.key })
      : linkTo('/jobs', namespace, { job: contract, day: date });
  const isLate = slots.some((slot) => slot.isLate);
  return (
    <a
      class={`slot ${state.replace(' ', '-')} ${isLate ? 'late' : ''} ${missed > 0 ? 'gaps' : ''}`}
      data-row
      href={href}
      title={words}
      aria-label={words}
    >
      {slots.length > 1 ? count : ''}
    </a>
  );
}
