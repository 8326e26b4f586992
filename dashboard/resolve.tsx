// Deciding: one record, or all that were shown. Each is decided as it was looked at; one that has changed since is left alone,
// and the person is told.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { ProblemBody, RecordInfo } from './answers.ts';
import { post, tellChange } from './api.ts';
import { Text } from './parts.tsx';
import { many, oneLine } from './text.ts';

export const verdicts = [
  [
    'landed',
    'It landed',
    'The effect happened. Later calls do not execute: they get the result if you give it, otherwise only that it is done.',
  ],
  ['notLanded', 'It did not land', 'The effect did not happen. The next call executes.'],
  ['runAgain', 'Run it again', 'Nobody knows, and a second effect is acceptable. The next call executes.'],
  ['abandon', 'Give it up', 'Nobody will find out. It is not executed again, and later calls are refused.'],
] as const;

type Verdict = (typeof verdicts)[number][0];

interface Item {
  readonly status: number;
  readonly body: Partial<ProblemBody>;
}

interface Report {
  readonly done: number;
  readonly refused: readonly { readonly record: RecordInfo; readonly problem: Partial<ProblemBody> }[];
}

/** By key: finding a record by its id takes a search. */
export function refOf({ key, ref }: RecordInfo): string {
  return `${key}@${ref.slice(ref.lastIndexOf('@') + 1)}`;
}

function readResult(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('The result is not JSON. Write a text in double quotes, or leave the field empty.');
  }
}

const batch = 500;
const samples = 5;

export function ResolveDialog(props: {
  readonly records: readonly RecordInfo[];
  readonly namespace: string;
  readonly onClose: () => void;
}) {
  const { namespace, onClose } = props;
  // As they were when the dialog was opened: a refresh behind it must not change what is decided.
  const [records] = useState(props.records);
  const [verdict, setVerdict] = useState<Verdict | undefined>(undefined);
  const [note, setNote] = useState('');
  const [remoteRef, setRemoteRef] = useState('');
  const [result, setResult] = useState('');
  const [force, setForce] = useState(false);
  const [isSending, setSending] = useState(false);
  const [report, setReport] = useState<Report | undefined>(undefined);
  const [problem, setProblem] = useState<Error | undefined>(undefined);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector('input')?.focus();
  }, []);

  const send = async () => {
    if (verdict === undefined || isSending) return;
    setSending(true);
    setProblem(undefined);
    try {
      const isKnown = verdict === 'landed' && records.length === 1 && result.trim() !== '';
      const value = isKnown ? { value: readResult(result) } : {};
      let done = 0;
      const refused: { record: RecordInfo; problem: Partial<ProblemBody> }[] = [];
      for (let from = 0; from < records.length; from += batch) {
        const part = records.slice(from, from + batch);
        const items = part.map((record) => ({
          ref: refOf(record),
          verdict,
          ...(note.trim() === '' ? {} : { note: note.trim() }),
          ...(verdict === 'landed' && records.length === 1 && remoteRef.trim() !== ''
            ? { remoteRef: remoteRef.trim() }
            : {}),
          ...value,
          ...(force ? { force: true } : {}),
        }));
        const answer = await post<{ items: readonly Item[] }>('/v1/resolve', { items }, namespace);
        answer.items.forEach(({ status, body }, n) => {
          const record = part[n];
          if (status < 300) done += 1;
          else if (record !== undefined) refused.push({ record, problem: body });
        });
      }
      tellChange();
      if (refused.length === 0) dialog.current?.close();
      else setReport({ done, refused });
    } catch (error) {
      setProblem(error as Error);
    } finally {
      setSending(false);
    }
  };

  const chosen = verdicts.find(([name]) => name === verdict);
  const isOne = records.length === 1;
  return (
    <dialog ref={dialog} class="resolve" onClose={onClose} aria-labelledby="resolve-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <h2 id="resolve-title">
          {isOne ? 'Did it land?' : `Did these ${many(records.length, 'record')} land?`}
        </h2>
        <ul class="samples">
          {records.slice(0, samples).map((record) => (
            <li key={record.key}>
              <code>{record.ref}</code> <Text text={record.contract} />{' '}
              <span class="dim">
                <Text text={record.args === undefined ? 'args not stored' : oneLine(record.args, 90)} />
              </span>
            </li>
          ))}
          {records.length > samples && (
            <li class="dim">… and {(records.length - samples).toLocaleString('en')} more</li>
          )}
        </ul>
        {report === undefined ? (
          <>
            <fieldset>
              <legend>What you found out at the target</legend>
              {verdicts.map(([name, title, about]) => (
                <label key={name} class="choice">
                  <input
                    type="radio"
                    name="verdict"
                    checked={verdict === name}
                    onChange={() => setVerdict(name)}
                  />
                  <span>
                    <strong>{title}</strong> <small>{about}</small>
                  </span>
                </label>
              ))}
            </fieldset>
            {verdict === 'landed' && isOne && (
              <label class="field">
                Its id at the target, if known
                <input
                  value={remoteRef}
                  maxLength={500}
                  onInput={(event) => setRemoteRef(event.currentTarget.value)}
                />
              </label>
            )}
            {verdict === 'landed' && isOne && (
              <label class="field">
                What it returned, as JSON, if known: later calls get it
                <input
                  value={result}
                  placeholder={'{"id":"re_1"}'}
                  onInput={(event) => setResult(event.currentTarget.value)}
                />
              </label>
            )}
            <label class="field">
              Why, for the history
              <input value={note} maxLength={2_000} onInput={(event) => setNote(event.currentTarget.value)} />
            </label>
            {verdict === 'notLanded' && (
              <label class="choice">
                <input
                  type="checkbox"
                  checked={force}
                  onChange={(event) => setForce(event.currentTarget.checked)}
                />
                <span>
                  <strong>I am sure</strong>{' '}
                  <small>although a request may still be on its way, or an attempt holds its lease</small>
                </span>
              </label>
            )}
          </>
        ) : (
          <div class="report" role="alert">
            <p>
              {many(report.done, 'record')} decided, {report.refused.length.toLocaleString('en')} left as{' '}
              {report.refused.length === 1 ? 'it is' : 'they are'}:
            </p>
            <ul>
              {report.refused.slice(0, 10).map(({ record, problem: { code, detail = '' } }) => (
                <li key={record.key}>
                  <code>{record.ref}</code>{' '}
                  {code === 'RESOLVE_STALE' ? 'has changed since this page was loaded. ' : `${code}: `}
                  <span class="dim">
                    <Text text={detail} max={300} />
                  </span>
                </li>
              ))}
            </ul>
            <p>Close this, look at the present state, and decide again.</p>
          </div>
        )}
        {problem !== undefined && (
          <p class="problem" role="alert">
            <Text text={problem.message} />
          </p>
        )}
        <div class="buttons">
          {report === undefined && (
            <button type="submit" class="primary" disabled={verdict === undefined || isSending}>
              {isSending
                ? 'Deciding…'
                : chosen === undefined
                  ? 'Choose a verdict'
                  : `${chosen[1]}: decide ${isOne ? 'this record' : many(records.length, 'record')}`}
            </button>
          )}
          <button type="button" onClick={() => dialog.current?.close()}>
            {report === undefined ? 'Cancel' : 'Close'}
          </button>
        </div>
      </form>
    </dialog>
  );
}
