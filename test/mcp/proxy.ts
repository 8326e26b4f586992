// `semel mcp` in a place of its own, in front of the fake server or of another one.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { atTheEnd, main, type Place, place } from '../cli/place.ts';
import { type RawClient, rawClient } from './raw-client.ts';

export const serverAt = (name: string) => join(import.meta.dirname, 'servers', name);
export const fake = serverAt('fake.ts');

/** A claim that dies is noticed soon. */
export const soon = { lease: '1s', timeout: '20s' } as const;

export interface ProxyPlace extends Place {
  /** The words of a command line that starts the proxy. */
  command(options: readonly string[], server: readonly string[]): readonly string[];
  /** A client of a proxy in front of the fake server. */
  client(options?: readonly string[], more?: readonly string[]): RawClient;
  effects(): readonly string[];
  /** What the server got, byte for byte. */
  received(): string;
  policy(tools: object, more?: object): string;
  /** Lets the server go on. */
  open(): void;
  /** Lets it wait again. */
  close(): void;
}

export function proxyPlace(env: Readonly<Record<string, string>> = {}): ProxyPlace {
  const here = place(env);
  const clients: RawClient[] = [];
  atTheEnd(() => {
    for (const { child } of clients) if (child.exitCode === null) child.kill('SIGKILL');
  });
  const command = (options: readonly string[], server: readonly string[]) => [
    process.execPath,
    main,
    'mcp',
    ...options,
    '--',
    ...server,
  ];
  return {
    ...here,
    command,
    client(options = [], more = []) {
      const client = rawClient(command(options, [process.execPath, fake, here.folder, ...more]), here.env);
      clients.push(client);
      return client;
    },
    effects: () => here.lines('effects'),
    received: () => (existsSync(here.path('received')) ? readFileSync(here.path('received'), 'utf8') : ''),
    policy: (tools, more = {}) =>
      here.file('semel.policy.json', JSON.stringify({ version: 1, ...more, tools })),
    open: () => void here.file('gate', ''),
    close: () => rmSync(here.path('gate')),
  };
}

/** What semel says of a call that was not run, as data. */
export function errorOf(answer: { result?: { _meta?: Record<string, unknown> }; error?: { data?: object } }) {
  const data = answer.result?._meta ?? (answer.error?.data as Record<string, unknown> | undefined);
  return data?.['dev.semel/error'] as
    | { code: string; correctiveAction: string; retriable: boolean; evidence?: { ref: string } }
    | undefined;
}

interface Told {
  readonly _meta?: Record<string, unknown> | undefined;
}

/** The kept answer of the server. */
export function isReplay({ result }: { readonly result?: Told | undefined }): boolean {
  return result?._meta?.['dev.semel/replayed'] === true;
}

/** The model is asked whether it means the call as a new action. */
export function isQuestion(result: Told | undefined): boolean {
  return refIn(result) !== undefined;
}

/** What the model answers with. */
export function refIn(result: Told | undefined): string | undefined {
  return (result?._meta?.['dev.semel/question'] as { ref: string } | undefined)?.ref;
}

/** The ledger has answered, as done or by a question: nothing was run. */
export function isKept(answer: { readonly result?: Told | undefined }): boolean {
  return isReplay(answer) || isQuestion(answer.result);
}
