// The page: who is looking, which namespace, one search box, the views, and the keys.

import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Me, OpenCounts } from './answers.ts';
import { get, onLoggedOut, post, useConnected, useData, useLiveFeed } from './api.ts';
import { followLinks, go, linkTo, usePlace } from './place.ts';
import { findSession, keepSession, redeem } from './session.ts';
import { Doubts } from './views/doubts.tsx';
import { JobsView } from './views/jobs.tsx';
import { OutboxView } from './views/outbox.tsx';
import { Overview } from './views/overview.tsx';
import { RecordView } from './views/record.tsx';
import { Search } from './views/search.tsx';

const views = {
  '/doubts': Doubts,
  '/record': RecordView,
  '/search': Search,
  '/overview': Overview,
  '/jobs': JobsView,
  '/outbox': OutboxView,
} as const;

const titles: Readonly<Record<string, string>> = {
  '/doubts': 'In doubt',
  '/record': 'Record',
  '/search': 'Search',
  '/overview': 'Overview',
  '/jobs': 'Jobs',
  '/outbox': 'Outbox',
};

function App() {
  const [me, setMe] = useState<Me | undefined>(undefined);
  const [isAsking, setAsking] = useState(true);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const enter = async () => {
    try {
      const found = await get<Me>('/v1/whoami', {}, undefined);
      setMe(found);
      setProblem(undefined);
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  useEffect(() => {
    onLoggedOut(() => setMe(undefined));
    const isLink = location.hash.startsWith('#login=');
    void (async () => {
      const found = await findSession().catch(() => undefined);
      if (found !== undefined) await enter();
      else if (isLink)
        setProblem(
          'This link was used already, or is older than five minutes. Paste a token, or run `semel ui` again.',
        );
      setAsking(false);
    })();
  }, []);
  if (isAsking)
    return (
      <p class="boot" role="status">
        Loading…
      </p>
    );
  return me === undefined ? <Login problem={problem} onEnter={enter} /> : <Desk me={me} />;
}

function Login({
  problem,
  onEnter,
}: {
  readonly problem: string | undefined;
  readonly onEnter: () => Promise<void>;
}) {
  const [token, setToken] = useState('');
  const [refused, setRefused] = useState(problem);
  const send = async () => {
    try {
      const { code } = await post<{ code: string }>('/v1/logins', {}, undefined, token.trim());
      const session = await redeem(code);
      if (session === undefined) throw new Error('The session was refused.');
      keepSession(session);
      await onEnter();
    } catch (error) {
      setRefused((error as Error).message);
    }
  };
  return (
    <main class="login">
      <h1>semel</h1>
      <p>
        Paste a token of this server: this address opens after it. <code>semel serve</code> keeps its own in
        the file that it names when it starts, mostly <code>~/.local/state/semel/serve.token</code> on its
        machine. Without one, ask the person who runs it.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <label class="field">
          Token
          <input
            type="password"
            autocomplete="off"
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={token.trim() === ''}>
          Log in
        </button>
      </form>
      {refused !== undefined && (
        <p class="problem" role="alert">
          {refused}
        </p>
      )}
    </main>
  );
}

/** The namespace of the address; otherwise the token's own, unless only another one has something to decide. */
function chooseNamespace(me: Me, asked: string | undefined): string {
  if (asked !== undefined && me.namespaces.some(({ name }) => name === asked)) return asked;
  const own = me.namespaces.find(({ name }) => name === me.namespace);
  const isQuiet = own === undefined || own.inDoubt + own.inFlight === 0;
  const others = me.namespaces.filter(({ name }) => name !== me.namespace);
  const [busiest] = others.toSorted((a, b) => b.inDoubt - a.inDoubt || b.inFlight - a.inFlight);
  return isQuiet && busiest !== undefined && busiest.inDoubt > 0 ? busiest.name : me.namespace;
}

function Desk({ me }: { readonly me: Me }) {
  const { path, params } = usePlace();
  const [fallback] = useState(() => chooseNamespace(me, undefined));
  // Alerts link to `/?namespace=…&q=…`.
  const asked = params.ns ?? params.namespace;
  const namespace = asked === undefined ? fallback : chooseNamespace(me, asked);
  const [isHelp, setHelp] = useState(false);
  useLiveFeed(namespace);
  const open = useData<OpenCounts>('/v1/summary', {}, namespace);
  const inDoubt = open.data?.inDoubt ?? me.namespaces.find(({ name }) => name === namespace)?.inDoubt ?? 0;
  const main = useRef<HTMLElement>(null);
  const box = useRef<HTMLInputElement>(null);

  useEffect(() => {
    if (path in views) return;
    const start = inDoubt > 0 ? '/doubts' : '/overview';
    go(
      params.q === undefined ? linkTo(start, namespace) : linkTo('/search', namespace, { q: params.q }),
      true,
    );
  }, [path]);
  const wasAt = useRef('');
  useEffect(() => {
    const title = titles[path] ?? 'semel';
    document.title = `${inDoubt > 0 ? `(${inDoubt}) ` : ''}${title} · semel`;
    // People who cannot see the view change hear its heading.
    if (wasAt.current !== '' && wasAt.current !== path) main.current?.querySelector('h1')?.focus();
    wasAt.current = path;
  }, [path, inDoubt]);
  useEffect(() => {
    const act = (event: KeyboardEvent) =>
      onKey(event, { box: box.current, namespace, help: () => setHelp(true) });
    addEventListener('keydown', act);
    return () => removeEventListener('keydown', act);
  }, [namespace]);

  const View = views[path as keyof typeof views];
  const mayDecide = me.role === 'admin';
  const link = (to: string, words: string, count?: number) => (
    <a href={linkTo(to, namespace)} aria-current={path === to ? 'page' : undefined}>
      {words}
      {count !== undefined && count > 0 && <span class="count">{count.toLocaleString('en')}</span>}
    </a>
  );
  const elsewhere = me.namespaces.filter(({ name, inDoubt: there }) => name !== namespace && there > 0);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: it only follows links, which have keys of their own.
    <div class="desk" onClick={followLinks}>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={linkTo('/', namespace)}>
          semel
        </a>
        <nav aria-label="Views">
          {link('/doubts', 'In doubt', inDoubt)}
          {link('/overview', 'Overview')}
          {link('/jobs', 'Jobs')}
          {(me.hasOutbox || path === '/outbox') && link('/outbox', 'Outbox')}
        </nav>
        <search class="search">
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const q = box.current?.value.trim() ?? '';
              if (q !== '') go(linkTo('/search', namespace, { q }));
            }}
          >
            <input
              ref={box}
              type="search"
              name="q"
              maxLength={500}
              aria-label="Did this happen? Key, ref, tool call id, provider's id or an argument's value"
              placeholder="Did this happen? key, ref, id, argument…"
              title="Press / to search"
              defaultValue={params.q ?? ''}
              key={params.q ?? ''}
            />
          </form>
        </search>
        <div class="side">
          {me.namespaces.length > 1 ? (
            <select
              aria-label="Namespace"
              value={namespace}
              onChange={(event) =>
                go(linkTo(path === '/record' ? '/overview' : path, event.currentTarget.value))
              }
            >
              {me.namespaces.map(({ name, inDoubt: atLogin }) => {
                const there = name === namespace ? inDoubt : atLogin;
                return (
                  <option key={name} value={name}>
                    {name}
                    {there > 0 ? ` (${there} in doubt)` : ''}
                  </option>
                );
              })}
            </select>
          ) : (
            <span class="namespace">{namespace}</span>
          )}
          <Live />
          <Theme />
          <button type="button" class="quiet" aria-label="Keys" onClick={() => setHelp(true)}>
            ?
          </button>
        </div>
      </header>
      {elsewhere.length > 0 && (
        <p class="elsewhere">
          Also in doubt:{' '}
          {elsewhere.slice(0, 5).map(({ name, inDoubt: there }) => (
            <a key={name} href={linkTo('/doubts', name)}>
              {there.toLocaleString('en')} in {name}
            </a>
          ))}
        </p>
      )}
      <main id="main" ref={main}>
        {View !== undefined && (
          <View key={`${path} ${namespace}`} {...{ namespace, params, me, mayDecide }} />
        )}
      </main>
      <footer>
        <span>
          {me.name}, role {me.role}
          {!mayDecide && ': view only'}
        </span>
        <span>{me.store}</span>
      </footer>
      {isHelp && <Help onClose={() => setHelp(false)} />}
    </div>
  );
}

function Live() {
  const is = useConnected();
  return (
    <span class={`live ${is ? 'on' : 'off'}`} role="status">
      {is ? 'live' : 'offline'}
    </span>
  );
}

function Theme() {
  const shown = () =>
    document.documentElement.dataset.theme ??
    (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  const [theme, setTheme] = useState(shown);
  const other = theme === 'dark' ? 'light' : 'dark';
  const change = () => {
    document.documentElement.dataset.theme = other;
    localStorage.setItem('semel-theme', other);
    setTheme(other);
    dispatchEvent(new Event('semel-theme'));
  };
  return (
    <button type="button" class="quiet" onClick={change} aria-label={`Use the ${other} theme`}>
      {theme === 'dark' ? '☀' : '☾'}
    </button>
  );
}

const keys = [
  ['/', 'search'],
  ['j k', 'next and previous row'],
  ['Enter', 'open the row'],
  ['d', 'decide the row, or this record'],
  ['g then d o j b', 'go to In doubt, Overview, Jobs, Outbox'],
  ['?', 'this list'],
  ['Esc', 'close, or leave the search'],
] as const;

function Help({ onClose }: { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" onClose={onClose} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <dl class="facts-list">
        {keys.map(([name, about]) => (
          <>
            <dt>
              <kbd>{name}</kbd>
            </dt>
            <dd>{about}</dd>
          </>
        ))}
      </dl>
      <div class="buttons">
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}

const places: Readonly<Record<string, string>> = { d: '/doubts', o: '/overview', j: '/jobs', b: '/outbox' };
let isGoing = false;

function onKey(
  event: KeyboardEvent,
  { box, namespace, help }: { box: HTMLInputElement | null; namespace: string; help: () => void },
): void {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') !== null)
    return;
  if (target.closest('input, select, textarea') !== null) {
    if (event.key === 'Escape') target.blur();
    return;
  }
  const wasGoing = isGoing;
  isGoing = event.key === 'g';
  const way = wasGoing ? places[event.key] : undefined;
  const act =
    way !== undefined
      ? () => go(linkTo(way, namespace))
      : event.key === '/'
        ? () => box?.select()
        : event.key === '?'
          ? help
          : event.key === 'j' || event.key === 'k'
            ? () => moveRow(event.key === 'j' ? 1 : -1)
            : event.key === 'd'
              ? decideHere
              : undefined;
  if (act === undefined) return;
  event.preventDefault();
  act();
}

function moveRow(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? (by === 1 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + by));
  rows[next]?.focus();
  rows[next]?.scrollIntoView({ block: 'nearest' });
}

function decideHere(): void {
  const here = document.activeElement?.closest('li')?.querySelector<HTMLElement>('[data-decide]');
  (here ?? document.querySelector<HTMLElement>('.record [data-decide]'))?.click();
}

const root = document.getElementById('app');
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
