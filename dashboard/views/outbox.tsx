// Outbox: what is staged and not delivered.

import type { OutboxAnswer } from '../answers.ts';
import { useData } from '../api.ts';
import { Ago, Badge, Empty, Head, Load, Text } from '../parts.tsx';
import { linkTo } from '../place.ts';
import { many, oneLine, shellWord } from '../text.ts';
import type { ViewProps } from './view.ts';

const states = [
  [undefined, 'all', 'ls'],
  ['dead', 'dead', 'dead'],
  ['in doubt', 'in doubt', 'doubt'],
] as const;

export function OutboxView({ namespace, params }: ViewProps) {
  const [state, , word] = states.find(([name]) => name === params.state) ?? states[0];
  const loaded = useData<OutboxAnswer>('/v1/outbox', { state, after: params.after }, namespace);
  return (
    <>
      <Head title="Outbox" command={`semel outbox ${word} --namespace ${shellWord(namespace)}`}>
        <nav class="tabs" aria-label="State">
          {states.map(([name, title]) => (
            <a
              key={title}
              href={linkTo('/outbox', namespace, { state: name })}
              aria-current={name === state ? 'page' : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
      </Head>
      <Load loaded={loaded} what="the outbox">
        {({ rows, isAvailable, next }) =>
          rows.length === 0 ? (
            <Empty
              title={
                isAvailable
                  ? `Nothing${state === undefined ? ' is staged' : ` is ${state}`} in ${namespace}.`
                  : 'This store has no outbox: SQLite and Postgres ledgers have one.'
              }
            >
              {state !== undefined && (
                <p>
                  A filter is set. <a href={linkTo('/outbox', namespace)}>Show everything staged</a>
                </p>
              )}
            </Empty>
          ) : (
            <>
              <ul class="rows">
                {rows.map((row) => (
                  <li key={row.n}>
                    <a class="row" data-row href={linkTo('/record', namespace, { key: row.key })}>
                      <span class="ref">
                        {row.n} <Text text={row.contract} max={64} />
                      </span>
                      <span class="what">
                        <Text
                          text={
                            row.isDamaged
                              ? 'damaged: the row was changed since it was staged'
                              : oneLine(row.args)
                          }
                        />
                        {row.reason !== null && (
                          <>
                            <br />
                            <span class="dim">
                              <Text text={row.reason} max={300} />
                            </span>
                          </>
                        )}
                      </span>
                      <span class="facts">
                        {row.group !== null && (
                          <span>
                            group <Text text={row.group} max={40} />
                          </span>
                        )}
                        {row.tries > 0 && <span>{many(row.tries, 'try', 'tries')}</span>}
                        <Badge state={row.state} />
                        <span>
                          staged <Ago at={row.stagedAt} />
                        </span>
                      </span>
                    </a>
                  </li>
                ))}
              </ul>
              <p class="notice">
                {params.after === undefined
                  ? next !== undefined && `The oldest ${rows.length} rows.`
                  : `Rows after ${params.after}.`}{' '}
                {params.after !== undefined && <a href={linkTo('/outbox', namespace, { state })}>Oldest</a>}{' '}
                {next !== undefined && (
                  <a href={linkTo('/outbox', namespace, { state, after: next })}>Next rows</a>
                )}
              </p>
            </>
          )
        }
      </Load>
    </>
  );
}
