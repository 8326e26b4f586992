// Where alerts go: a webhook, a Slack channel, a command. Each sends one event, once per call, within its own time limit; what to
// do about a failure is decided elsewhere.

import { spawn } from 'node:child_process';
import { describeThrown } from '../../core/contract/classify.ts';
import { SemelError } from '../../core/errors.ts';
import { shortDigest } from '../../core/key/key.ts';
import { NotLanded, Rejected } from '../../core/signals.ts';
import type { AlertEvent } from './event.ts';
import { signatureHeaders } from './signature.ts';
import { slackMessage } from './slack.ts';

export interface Target {
  /** A digest: an address may hold a secret, so it is never stored. */
  readonly id: string;
  /** For people: without what may be secret. */
  readonly shown: string;
  /** Throws NotLanded where it is certain that nothing arrived or that it was refused; Rejected where nobody wants more. */
  send(event: AlertEvent, signal: AbortSignal): Promise<void>;
}

/** Standard Webhooks: 15 to 30 seconds. */
const requestMs = 20_000;
const commandMs = 60_000;

export function webhookTarget(address: string, secrets: readonly Uint8Array[]): Target {
  const url = checkAddress(address);
  return {
    id: shortDigest('alerts', 'webhook', url.href),
    shown: url.origin,
    send(event, signal) {
      const body = JSON.stringify(event);
      const signed = signatureHeaders(secrets, event.id, body, Date.now());
      return post(url, { 'content-type': 'application/cloudevents+json', ...signed }, body, signal);
    },
  };
}

export function slackTarget(address: string): Target {
  const url = checkAddress(address);
  return {
    id: shortDigest('alerts', 'slack', url.href),
    shown: `Slack (${url.origin})`,
    send: (event, signal) =>
      post(url, { 'content-type': 'application/json' }, JSON.stringify(slackMessage(event)), signal),
  };
}

/** Gets the event on its standard input; exit code 0 means that it was taken. */
export function commandTarget(command: string): Target {
  if (command.trim() === '')
    throw new SemelError('INVALID_ARGS', 'The command is empty.', {
      path: 'exec',
      next: 'Pass a shell command.',
    });
  return {
    id: shortDigest('alerts', 'exec', command),
    shown: 'the command',
    send: (event, signal) => runCommand(command, `${JSON.stringify(event)}\n`, signal),
  };
}

function checkAddress(address: string): URL {
  const wrong = (happened: string) =>
    new SemelError('INVALID_ARGS', happened, {
      path: 'url',
      next: 'Pass a URL such as https://example.com/hook.',
    });
  if (!URL.canParse(address)) throw wrong('The address is not a URL.');
  const url = new URL(address);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw wrong('The address is not http or https.');
  if (url.username !== '' || url.password !== '')
    throw wrong('The address holds a user name or a password, which fetch does not send.');
  return url;
}

async function post(
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'user-agent': 'semel', ...headers },
    body,
    // A redirect could send the alert anywhere.
    redirect: 'manual',
    signal: AbortSignal.any([signal, AbortSignal.timeout(requestMs)]),
  });
  // Only the status matters, and the body may never end.
  await response.body?.cancel().catch(() => undefined);
  const { status } = response;
  if (status >= 200 && status < 300) return;
  if (status === 410) throw new Rejected(`it answered 410: it wants no more alerts`);
  throw new NotLanded(`it answered ${status}`);
}

function runCommand(command: string, input: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    // Its own process group, so that it is stopped with everything it started.
    const child = spawn('/bin/sh', ['-c', command], {
      // Its output would mix with ours; its complaints are for the operator.
      stdio: ['pipe', 'ignore', 'inherit'],
      detached: true,
    });
    const kill = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // No process is left.
      }
    };
    const timer = setTimeout(kill, commandMs);
    signal.addEventListener('abort', kill);
    process.once('exit', kill);
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', kill);
      process.off('exit', kill);
    };
    // It need not read it.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    child.once('error', (error) => {
      end();
      reject(new NotLanded(`it could not be started: ${describeThrown(error)}`));
    });
    child.once('exit', (code, by) => {
      end();
      if (code === 0) resolve();
      // It may have done its work before it was killed.
      else if (code === null) reject(new Error(`it was ended by ${by}`));
      else reject(new NotLanded(`it exited with ${code}`));
    });
  });
}
