// "Did this happen?": whatever a person has in hand, and a plain answer that says how much was searched.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { RecordInfo, SearchAnswer } from '../answers.ts';
import { get } from '../api.ts';
import { Ago, Badge, Empty, Head, Problem, sinceOf, stateOf, Text } from '../parts.tsx';
import { go, linkTo } from '../place.ts';
import { many, oneLine, shellWord } from '../text.ts';
import { answerTo } from './record.tsx';
import type { ViewProps } from './view.ts';

interface Found {
  readonly q: string;
  readonly matches: SearchAnswer['matches'];
  readonly looked: number;
  readonly next: string | undefined;
  readonly isNewest: boolean;
  readonly isCut: boolean;
  readonly isSearching: boolean;
  readonly problem?: Error | undefined;
}

/** Then a person decides whether to go on. Without a match, the search ends with the ledger. */
const maxMatches = 50;

const namesOf = ({ id, key, ref }: RecordInfo): readonly string[] => [id, key, ref];

export function Search({ namespace, params }: ViewProps) {
  const q = (params.q ?? '').trim();
  const [found, setFound] = useState<Found | undefined>(undefined);
  const [turn, setTurn] = useState(0);
  const isStopped = useRef(false);

  useEffect(() => {
    const stop = new AbortController();
    isStopped.current = false;
    const run = async () => {
      const isMore = found?.q === q && found.next !== undefined;
      let state: Found = isMore
        ? { ...found, isSearching: true, isCut: false, problem: undefined }
        : { q, matches: [], looked: 0, next: undefined, isNewest: true, isCut: false, isSearching: true };
      const enough = state.matches.length + maxMatches;
      setFound(state);
      do {
        const answer = await get<SearchAnswer>(
          '/v1/search',
          { q, after: state.next },
          namespace,
          stop.signal,
        );
        const known = new Set(state.matches.map(({ record }) => record.key));
        state = {
          q,
          matches: [...state.matches, ...answer.matches.filter(({ record }) => !known.has(record.key))],
          looked: state.looked + answer.looked,
          next: answer.next,
          isNewest: answer.isNewest,
          isCut: state.isCut || answer.isCut === true,
          isSearching: answer.next !== undefined,
        };
        setFound(state);
        await whenVisible(stop.signal);
      } while (state.next !== undefined && state.matches.length < enough && !isStopped.current);
      const [only, ...others] = state.matches;
      // An id, a ref or a key names one record, as the links of alerts do: show it.
      if (
        only !== undefined &&
        others.length === 0 &&
        state.next === undefined &&
        namesOf(only.record).includes(q)
      )
        go(linkTo('/record', namespace, { key: only.record.key }), true);
      else setFound({ ...state, isSearching: false });
    };
    if (q !== '')
      run().catch((problem: Error) => {
        if (!stop.signal.aborted) setFound((before) => before && { ...before, isSearching: false, problem });
      });
    return () => stop.abort();
  }, [q, namespace, turn]);

  const command = `semel ls --find ${shellWord(q)} --namespace ${shellWord(namespace)}`;
  return (
    <>
      <Head title="Did this happen?" command={command}>
        <p class="lead">
          <code class="query">
            <Text text={q} max={200} />
          </code>{' '}
          in {namespace}
        </p>
      </Head>
      {q === '' && (
        <Empty title="Type a key, a ref, a tool call id, a provider's id or an argument's value above." />
      )}
      {found !== undefined && found.q === q && (
        <>
          {found.problem !== undefined && (
            <Problem problem={found.problem} onRetry={() => setTurn(turn + 1)} />
          )}
          <ul class="rows results">
            {found.matches.map(({ record, found: places }) => (
              <li key={record.key}>
                <a class="row" data-row href={linkTo('/record', namespace, { key: record.key })}>
                  <span class="ref">
                    <Text text={record.contract} max={64} /> {record.ref}
                  </span>
                  <span class="what">
                    <strong>{answerTo(record)}</strong> <Ago at={sinceOf(record)} />
                    <br />
                    <Text text={record.args === undefined ? record.key : oneLine(record.args)} />
                  </span>
                  <span class="facts">
                    <span>
                      found in <Text text={places.join(', ')} max={80} />
                    </span>
                    <Badge state={stateOf(record)} />
                  </span>
                </a>
              </li>
            ))}
          </ul>
          {found.matches.length === 0 && !found.isSearching && found.problem === undefined && (
            <Empty
              title={
                found.next === undefined
                  ? `No record of ${namespace} has this.`
                  : 'Not known yet: only a part of the ledger was searched.'
              }
            >
              <p>
                Case matters. Records that have expired may be gone, and arguments of some tools are not
                stored.
              </p>
            </Empty>
          )}
          <p class="notice" role="status">
            {wordsOf(found)}{' '}
            {found.isSearching ? (
              <button
                type="button"
                onClick={() => {
                  isStopped.current = true;
                }}
              >
                Stop
              </button>
            ) : (
              found.next !== undefined && (
                <button type="button" onClick={() => setTurn(turn + 1)}>
                  Search older records
                </button>
              )
            )}
          </p>
        </>
      )}
    </>
  );
}

/** What was searched, so that nobody takes a part for the whole. */
function wordsOf({ looked, next, isNewest, isCut, isSearching }: Found): string {
  const part = `${isNewest ? 'newest ' : ''}${many(looked, 'record')}`;
  const cut = isCut ? ' Only the first matches of each part are shown.' : '';
  if (isSearching) return looked === 0 ? 'Searching…' : `Searched the ${part} so far, and going on…`;
  if (next !== undefined) return `Searched only the ${part}. The others were not searched.${cut}`;
  return looked === 0 ? `Found by its name.${cut}` : `Searched all ${many(looked, 'record')}.${cut}`;
}

/** A tab that nobody looks at does not keep the server busy. */
async function whenVisible(signal: AbortSignal): Promise<void> {
  while (document.hidden && !signal.aborted)
    await new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true }));
}
