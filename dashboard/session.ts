// The session of this browser tab. It is sent as a bearer token, never as a cookie: a cookie would go to every other port of this
// machine, and with every request that another page causes. It lives in this tab; a new tab asks the others, of this origin only.

import type { Session } from './answers.ts';

const name = 'semel-session';
const channel = new BroadcastChannel(name);

let current: Session | undefined = read();

function read(): Session | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

channel.addEventListener('message', ({ data }: MessageEvent<{ ask?: true; session?: Session }>) => {
  if (data.ask === true && current !== undefined) channel.postMessage({ session: current });
});

export function session(): Session | undefined {
  return current;
}

export function keepSession(next: Session | undefined): void {
  current = next;
  if (next === undefined) sessionStorage.removeItem(name);
  else sessionStorage.setItem(name, JSON.stringify(next));
}

/** By the code in the address, which is removed at once; of this tab; or of another tab. */
export async function findSession(): Promise<Session | undefined> {
  const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (code !== undefined) {
    history.replaceState(null, '', location.pathname + location.search);
    const found = await redeem(code);
    if (found !== undefined) keepSession(found);
  }
  return current ?? (await askOthers());
}

export async function redeem(code: string): Promise<Session | undefined> {
  const response = await fetch('/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
    credentials: 'omit',
  });
  return response.ok ? ((await response.json()) as Session) : undefined;
}

async function askOthers(): Promise<Session | undefined> {
  const answer = await new Promise<Session | undefined>((resolve) => {
    const hear = ({ data }: MessageEvent<{ session?: Session }>) => {
      if (data.session !== undefined) resolve(data.session);
    };
    channel.addEventListener('message', hear);
    setTimeout(() => {
      channel.removeEventListener('message', hear);
      resolve(undefined);
    }, 200);
    channel.postMessage({ ask: true });
  });
  if (answer !== undefined) keepSession(answer);
  return answer;
}
