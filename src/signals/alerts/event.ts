// What an alert says: a CloudEvents 1.0 event that is a Standard Webhooks payload at the same time. Thin: no args, no results.

import { escapeInvisible, shellWord } from '../../core/visible.ts';

export type EventKind = 'opened' | 'resolved';

/** One doubt of one record. It keeps its name while a verifier or a second attempt looks into it. */
export interface Doubt {
  /** `<record id>.<fence of the attempt that is not accounted for>`. */
  readonly id: string;
  readonly namespace: string;
  readonly tool: string;
  readonly key: string;
  /** What `semel resolve` takes. */
  readonly ref: string;
  readonly fence: number;
  readonly attempts: number;
  readonly openedAt: string;
  readonly dispatchedAt?: string;
  readonly error: string;
  readonly remoteRef?: string;
  /** What the provider was sent: look for it there. */
  readonly providerKey?: string;
}

/** How a doubt ended. */
export interface Decision {
  readonly outcome: 'landed' | 'not landed' | 'refused' | 'run again' | 'abandoned' | 'gone';
  readonly decidedAt: string;
  /** A person, a token or a program; absent: found out by the tool's own `verify`, or reported late. */
  readonly by?: string;
}

export interface Wording {
  /** The command-line options that reach this ledger. */
  readonly optionsFor: (namespace: string) => string;
  /** The address of the dashboard. */
  readonly url?: string | undefined;
}

export interface AlertEvent {
  readonly specversion: '1.0';
  /** The same for every delivery of this event. */
  readonly id: string;
  readonly source: string;
  readonly type: `dev.semel.doubt.${EventKind}`;
  readonly time: string;
  /** The same instant, under the name that Standard Webhooks uses. */
  readonly timestamp: string;
  readonly subject: string;
  readonly datacontenttype: 'application/json';
  readonly data: AlertData;
}

export interface AlertData extends Omit<Doubt, 'id' | 'fence'>, Partial<Decision> {
  readonly record: string;
  readonly show: string;
  /** Only while it is open. */
  readonly resolve?: string;
  readonly link?: string;
}

export function describeEvent(
  kind: EventKind,
  { id, fence: _, ...doubt }: Doubt,
  { optionsFor, url }: Wording,
  decision?: Decision,
): AlertEvent {
  const [record = ''] = id.split('.');
  const options = optionsFor(doubt.namespace);
  const time = decision?.decidedAt ?? doubt.openedAt;
  return {
    specversion: '1.0',
    id: `${id}.${kind}`,
    source: `/semel/${encodeURIComponent(doubt.namespace)}`,
    type: `dev.semel.doubt.${kind}`,
    time,
    timestamp: time,
    subject: record,
    datacontenttype: 'application/json',
    data: {
      record,
      ...doubt,
      ...decision,
      error: cut(doubt.error),
      show: `semel show ${shellWord(record)} ${options}`.trimEnd(),
      ...(kind === 'opened'
        ? { resolve: `semel resolve ${shellWord(doubt.ref)} ${verdicts} ${options}`.trimEnd() }
        : {}),
      ...(url === undefined ? {} : { link: linkTo(url, doubt.namespace, record) }),
    },
  };
}

/** For a command to paste: with `|` between them a shell would run the first part, and decide "landed". */
const verdicts = 'landed/not-landed/run-again/abandon';

/** Errors come from tools and providers, and may hold a whole page. */
const maxErrorLength = 500;

function cut(text: string): string {
  const safe = escapeInvisible(text);
  return safe.length <= maxErrorLength ? safe : `${safe.slice(0, maxErrorLength)}…`;
}

function linkTo(url: string, namespace: string, record: string): string {
  const link = new URL(url);
  link.searchParams.set('namespace', namespace);
  link.searchParams.set('q', record);
  return link.href;
}
