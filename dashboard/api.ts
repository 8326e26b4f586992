// Requests, and the live feed. Every answer is data: nothing of it becomes markup.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { ProblemBody } from './answers.ts';
import { keepSession, session } from './session.ts';

export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly action: string;
  constructor({ status, code, detail, correctiveAction }: ProblemBody) {
    super(detail);
    this.status = status;
    this.code = code;
    this.action = correctiveAction;
  }
}

type Params = Readonly<Record<string, string | undefined>>;

let whenLoggedOut: () => void = () => undefined;
export function onLoggedOut(act: () => void): void {
  whenLoggedOut = act;
}

function headersFor(namespace: string | undefined, token = session()?.session): Record<string, string> {
  return {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(namespace === undefined ? {} : { 'semel-namespace': namespace }),
  };
}

async function answerOf<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const body = (await response.json().catch(() => undefined)) as ProblemBody | undefined;
  if (response.status === 401) {
    keepSession(undefined);
    whenLoggedOut();
  }
  throw new ApiProblem(
    body ?? {
      status: response.status,
      code: `HTTP ${response.status}`,
      detail: 'The server gave no reason.',
      correctiveAction: 'Try again.',
    },
  );
}

export function addressOf(path: string, params: Params = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    if (value !== undefined && value !== '') query.set(name, value);
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}

export async function get<T>(
  path: string,
  params: Params,
  namespace: string | undefined,
  signal?: AbortSignal,
): Promise<T> {
  const init = { headers: headersFor(namespace), credentials: 'omit' as const, ...(signal && { signal }) };
  return answerOf<T>(await fetch(addressOf(path, params), init));
}

export async function post<T>(
  path: string,
  body: unknown,
  namespace: string | undefined,
  token?: string,
): Promise<T> {
  const response = await fetch(path, {
    method: 'POST',
    credentials: 'omit',
    headers: { ...headersFor(namespace, token ?? session()?.session), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return answerOf<T>(response);
}

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly problem: Error | undefined;
  /** The data is of the question before. */
  readonly isOld: boolean;
  readonly refresh: () => void;
}

/** Asks again when something was written, and when the tab is looked at again. */
export function useData<T>(path: string, params: Params, namespace: string, isLive = true): Loaded<T> {
  const question = `${namespace} ${addressOf(path, params)}`;
  const [state, setState] = useState<{ question: string; data?: T; problem?: Error }>({ question: '' });
  const again = useRef<() => void>(() => undefined);
  useEffect(() => {
    const stop = new AbortController();
    let isAsking = false;
    let isDue = false;
    const ask = async () => {
      // An answer that takes longer than writes are apart must arrive: an equal question is asked when this one has ended.
      isDue = isAsking;
      if (isAsking) return;
      isAsking = true;
      try {
        const data = await get<T>(path, params, namespace, stop.signal);
        if (!stop.signal.aborted) setState({ question, data });
      } catch (caught) {
        const problem = caught as Error;
        if (!stop.signal.aborted)
          setState((before) =>
            before.question === question ? { ...before, problem } : { question, problem },
          );
      }
      isAsking = false;
      if (isDue && !stop.signal.aborted) void ask();
    };
    again.current = () => void ask();
    void ask();
    return () => stop.abort();
  }, [question]);
  useEffect(() => (isLive ? onChange(() => again.current()) : undefined), [isLive]);
  return {
    data: state.data,
    problem: state.problem,
    isOld: state.question !== question,
    refresh: () => again.current(),
  };
}

const listeners = new Set<() => void>();
let isConnected = false;
const connectionListeners = new Set<(is: boolean) => void>();

function onChange(tell: () => void): () => void {
  listeners.add(tell);
  return () => void listeners.delete(tell);
}

export function tellChange(): void {
  for (const tell of listeners) tell();
}

function setConnected(is: boolean): void {
  isConnected = is;
  for (const tell of connectionListeners) tell(is);
}

export function useConnected(): boolean {
  const [is, set] = useState(isConnected);
  useEffect(() => {
    connectionListeners.add(set);
    return () => void connectionListeners.delete(set);
  }, []);
  return is;
}

/** At most one refresh a second, none while the tab is hidden. */
export function useLiveFeed(namespace: string | undefined): void {
  const due = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    if (namespace === undefined) return undefined;
    let stop = new AbortController();
    const soon = () => {
      due.current ??= setTimeout(() => {
        due.current = undefined;
        if (!document.hidden) tellChange();
      }, 700);
    };
    const connect = () => {
      stop = new AbortController();
      void follow(namespace, stop.signal, soon);
    };
    const look = () => {
      stop.abort();
      if (document.hidden) return;
      connect();
      tellChange();
    };
    document.addEventListener('visibilitychange', look);
    if (!document.hidden) connect();
    return () => {
      document.removeEventListener('visibilitychange', look);
      stop.abort();
    };
  }, [namespace]);
}

async function follow(namespace: string, signal: AbortSignal, onEvent: () => void): Promise<void> {
  for (let waitMs = 1_000; !signal.aborted; waitMs = Math.min(30_000, waitMs * 2)) {
    try {
      const response = await fetch('/v1/events', {
        headers: headersFor(namespace),
        signal,
        credentials: 'omit',
      });
      if (response.status === 401) return;
      const reader = response.ok
        ? response.body?.pipeThrough(new TextDecoderStream()).getReader()
        : undefined;
      if (reader !== undefined) {
        setConnected(true);
        waitMs = 1_000;
        for (let part = await reader.read(); !part.done; part = await reader.read())
          if (part.value.includes('event: change')) onEvent();
      }
    } catch {
      // The server is gone, or this tab stopped listening.
    }
    setConnected(false);
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}
