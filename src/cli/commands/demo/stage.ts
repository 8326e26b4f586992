// Plays one incident in one way, with its own target, ledger, folder and processes, and counts what landed.

import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createSemel, type Semel } from '../../../semel/index.ts';
import type { Job, Message } from './actor.ts';
import type { Part, Stage, Way } from './incident.ts';
import { incidents } from './incidents.ts';
import { startTarget } from './target.ts';

export interface Outcome {
  /** How often the effect landed, counted by the target. */
  readonly landed: number;
  /** How many records a person had to decide about, counted by the ledger. */
  readonly inDoubt: number;
}

// Run from the sources this file is TypeScript, from the package it is not.
const actor = fileURLToPath(new URL(`./actor${extname(import.meta.url)}`, import.meta.url));
/** No part of an incident takes nearly as long. */
const longestMs = 15_000;

export async function play(
  incident: number,
  way: Way,
  temporary: string,
  say: (text: string) => void,
): Promise<Outcome> {
  const played = incidents[incident];
  if (played === undefined) throw new Error(`There is no incident ${incident + 1}.`);
  const folder = join(temporary, `${incident + 1}-${way}`);
  mkdirSync(folder);
  const ledger = join(folder, 'ledger.db');
  await using target = await startTarget({ losesAnswers: played.losesAnswers ?? false });
  const job = { incident, way, folder, ledger, url: target.url };
  const open = () =>
    createSemel({
      store: `sqlite:${ledger}`,
      namespace: 'demo',
      mode: 'enforce',
      onWarning: () => undefined,
    });
  const stage: Stage = {
    way,
    say,
    start: (part = {}) => begin({ ...job, part, waits: false }, say).ended,
    async startTogether(parts: readonly Part[]) {
      const actors = parts.map((part) => begin({ ...job, part, waits: true }, say));
      const ended = Promise.all(actors.map((each) => each.ended));
      await Promise.race([Promise.all(actors.map((each) => each.ready)), ended]);
      for (const { child } of actors) child.send('begin');
      await ended;
    },
    semel: open,
  };
  await played.play(stage);
  return { landed: target.landed.length, inDoubt: way === 'bare' ? 0 : await doubtsIn(open()) };
}

interface Begun {
  readonly child: ChildProcess;
  readonly ready: Promise<void>;
  readonly ended: Promise<void>;
}

function begin(job: Job, say: (text: string) => void): Begun {
  const child = fork(actor, [JSON.stringify(job)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  const withUs = () => void child.kill('SIGKILL');
  const limit = setTimeout(withUs, longestMs);
  process.once('exit', withUs);
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = `${errors}${text}`.slice(-2_000);
  });
  const ready = new Promise<void>((resolve) => {
    child.on('message', (message: Message) => {
      if ('say' in message) say(message.say);
      else resolve();
    });
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(limit);
      process.off('exit', withUs);
      const isMeant = code === 0 || (signal === 'SIGKILL' && job.part.dies === true);
      if (isMeant) resolve();
      else reject(new Error(`A process of the demo ended with ${signal ?? code}. ${errors}`.trim()));
    });
  });
  return { child, ready, ended };
}

/** Those that are in doubt, and those that somebody has decided about. */
async function doubtsIn(open: Semel): Promise<number> {
  await using semel = open;
  const { items } = await semel.records.list();
  const histories = await Promise.all(items.map(({ key }) => semel.records.history(key)));
  return items.filter(
    (record, nth) => record.inDoubt || histories[nth]?.some(({ type }) => type === 'resolved'),
  ).length;
}
