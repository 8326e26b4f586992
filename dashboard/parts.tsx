// What several views share: states, commands to copy, values of strangers, and what is shown when there is nothing to show.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { RecordInfo } from './answers.ts';
import { ApiProblem, type Loaded } from './api.ts';
import { clock, cut, duration, secretName, visible } from './text.ts';

export type State = 'running' | 'in doubt' | 'abandoned' | 'succeeded' | 'failed' | 'released';

export function stateOf(record: RecordInfo): State {
  const { inDoubt, abandoned, status, error, contract } = record;
  if (inDoubt || status === 'unknown') return 'in doubt';
  if (status === 'released' && error !== undefined && contract.startsWith('run.')) return 'failed';
  return abandoned ? 'abandoned' : status;
}

export function sinceOf(record: RecordInfo): string {
  if (record.inDoubt) return record.lastDispatchedAt ?? record.updatedAt;
  if (record.lapsed) return record.updatedAt;
  if (record.status === 'running') return record.lastDispatchedAt ?? record.createdAt;
  return record.settledAt ?? record.updatedAt;
}

export function errorOf({ error }: RecordInfo): string {
  return error?.message ?? 'the process that ran it exited without reporting a result';
}

export function Badge({ state }: { readonly state: string }) {
  return <span class={`badge ${state.replace(' ', '-')}`}>{state}</span>;
}

/** Text of agents and providers: shown as it is, in a direction of its own, with hidden signs made visible. */
export function Text({ text, max = 2_000 }: { readonly text: string; readonly max?: number }) {
  return (
    <bdi title={text.length > max ? `${text.length} characters` : undefined}>{visible(cut(text, max))}</bdi>
  );
}

let now = Date.now();
const clocks = new Set<(at: number) => void>();
setInterval(() => {
  if (document.hidden) return;
  now = Date.now();
  for (const tell of clocks) tell(now);
}, 1_000);

function useNow(): number {
  const [at, set] = useState(now);
  useEffect(() => {
    clocks.add(set);
    return () => void clocks.delete(set);
  }, []);
  return at;
}

export function Ago({ at, word = 'ago' }: { readonly at: string | number; readonly word?: 'ago' | 'for' }) {
  const ms = useNow() - new Date(at).getTime();
  if (Number.isNaN(ms)) return <span>—</span>;
  const text = duration(Math.abs(ms) < 1_000 ? 0 : Math.abs(ms)).replace(/^0ms$/, '0s');
  const words = ms < -1_000 ? `in ${text}` : word === 'ago' ? `${text} ago` : text;
  return (
    <time dateTime={new Date(at).toISOString()} title={`${clock(at)} here, ${new Date(at).toISOString()}`}>
      {words}
    </time>
  );
}

/** The command that prints the same as this view. */
export function Command({ words }: { readonly words: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard?.writeText(words).then(
      () => setCopied(true),
      () => undefined,
    );
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <p class="command">
      <span aria-hidden="true">$</span> <code>{words}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy the command ${words}`}>
        {isCopied ? 'copied' : 'copy'}
      </button>
    </p>
  );
}

export function Head(props: {
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
  readonly command: string;
}) {
  return (
    <header class="head">
      <h1 tabIndex={-1}>{props.title}</h1>
      {props.children}
      <Command words={props.command} />
    </header>
  );
}

/** Loading, failed, or the content; old content stays while new content is on its way. */
export function Load<T>(props: {
  readonly loaded: Loaded<T>;
  readonly what: string;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { data, problem, isOld, refresh } = props.loaded;
  return (
    <>
      {problem !== undefined && <Problem problem={problem} onRetry={refresh} />}
      {data === undefined ? (
        problem === undefined && (
          <div class="loading" role="status">
            <span class="bar" /> <span class="bar" /> <span class="bar" />
            <p>Reading {props.what}…</p>
          </div>
        )
      ) : (
        <div class={isOld ? 'old' : ''} aria-busy={isOld}>
          {props.children(data)}
        </div>
      )}
    </>
  );
}

export function Problem({ problem, onRetry }: { readonly problem: Error; readonly onRetry?: () => void }) {
  const isApi = problem instanceof ApiProblem;
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{isApi ? problem.code : 'The server does not answer.'}</strong>{' '}
        {isApi ? (
          <Text text={problem.message} />
        ) : (
          'It may have ended, or the network is down. What is shown may be old.'
        )}
      </p>
      <p>{isApi ? <Text text={problem.action} /> : 'Start it again with: semel ui'}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <p class="title">{title}</p>
      {children}
    </div>
  );
}

const maxText = 2_000;
const maxLines = 400;

/** JSON as text, field by field. Fields that look like secrets are shown when asked for. */
export function Value({ value, label }: { readonly value: unknown; readonly label: string }) {
  const [isOpen, setOpen] = useState(false);
  const [isRevealed, setRevealed] = useState(false);
  let hidden = 0;
  let shortened = 0;
  const text =
    JSON.stringify(
      value,
      (name, each: unknown) => {
        if (!isRevealed && secretName.test(name) && each !== null && each !== undefined) {
          hidden += 1;
          return '••• hidden';
        }
        if (!isOpen && typeof each === 'string' && each.length > maxText) {
          shortened += 1;
          return `${each.slice(0, maxText)}… (${each.length.toLocaleString('en')} characters)`;
        }
        return each;
      },
      2,
    ) ?? 'undefined';
  const lines = text.split('\n');
  const shown = isOpen ? text.slice(0, 2_000_000) : lines.slice(0, maxLines).join('\n');
  const isCut = shortened > 0 || lines.length > maxLines || isOpen;
  return (
    <div class="value">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex lint/a11y/useSemanticElements: it scrolls, and a keyboard must reach it. */}
      <pre tabIndex={0} role="region" aria-label={label}>
        <bdi>{visible(shown)}</bdi>
      </pre>
      {(isCut || hidden > 0 || isRevealed) && (
        <p class="tools">
          {isCut && (
            <button type="button" class="quiet" onClick={() => setOpen(!isOpen)}>
              {isOpen ? 'show less' : 'show all of it'}
            </button>
          )}
          {(hidden > 0 || isRevealed) && (
            <button type="button" class="quiet" onClick={() => setRevealed(!isRevealed)}>
              {isRevealed ? 'hide secrets' : `${hidden} hidden, show`}
            </button>
          )}
        </p>
      )}
    </div>
  );
}
