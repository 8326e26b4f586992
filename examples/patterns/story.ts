// The stage for these examples. Every start of a program is a process of its own, the first one is killed with kill -9, and
// what landed is a file that semel does not read.

import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSemel, landed, notLanded, type SemelOptions, systemClock, type Verification } from 'semel';

const [way, startedAs = '1', folder = ''] = process.argv.slice(2);

/** Which start of the program this process is: 1, 2, … */
export const start = Number(startedAs);

export const file = (name: string): string => join(folder, name);

/** What createSemel needs here: a ledger in the folder of the story, and an hour between two starts. */
export const options: SemelOptions = optionsFor(folder, start);

function optionsFor(place: string, nth: number): SemelOptions {
  // The lease of a dead process is over, and nobody waited for it. Your own program has no `clock`.
  const ahead = (nth - 1) * 3_600_000;
  const clock = {
    ...systemClock,
    now: () => systemClock.now() + ahead,
    mono: () => systemClock.mono() + ahead,
  };
  return { store: `sqlite:${join(place, 'ledger.db')}`, namespace: 'shop', clock };
}

/** The effect: a mail, a refund, a parcel. */
export const land = (effect: string): void => appendFileSync(file('world.log'), `${effect}\n`);

/** For `verify`: asks the mail server, the bank or the carrier. */
export const look = (effect: string): Verification<void> =>
  readEffects(folder).includes(effect) ? landed(undefined) : notLanded();

/** The first start is killed here. */
export function killed(): void {
  if (start === 1) process.kill(process.pid, 'SIGKILL');
}

export const say = (text: string): void => console.log(`  start ${start}: ${text}`);

/** Plays the incident once for each way of writing the program, and prints what landed. */
export async function tell(ways: Record<string, () => Promise<void>>, { starts = 2 } = {}): Promise<void> {
  if (way !== undefined) return ways[way]?.();
  for (const name of Object.keys(ways)) {
    console.log(name);
    const place = mkdtempSync(join(tmpdir(), 'semel-pattern-'));
    for (let nth = 1; nth <= starts; nth += 1) startProgram(name, nth, place);
    console.log(`  landed: ${readEffects(place).join(', ') || 'nothing'}`);
    if (existsSync(join(place, 'ledger.db'))) await tellDoubts(optionsFor(place, starts + 1));
    rmSync(place, { recursive: true });
  }
}

function startProgram(name: string, nth: number, place: string): void {
  const args = [...process.execArgv, process.argv[1] as string, name, String(nth), place];
  const { status, signal } = spawnSync(process.execPath, args, { stdio: 'inherit' });
  if (nth === 1 ? signal !== 'SIGKILL' : status !== 0)
    throw new Error(`Start ${nth} of "${name}" ended with ${signal ?? status}.`);
}

async function tellDoubts(later: SemelOptions): Promise<void> {
  await using semel = createSemel(later);
  const { items } = await semel.doubts.list();
  for (const { contract } of items) console.log(`  in doubt: ${contract}`);
}

function readEffects(place: string): string[] {
  const world = join(place, 'world.log');
  return existsSync(world) ? readFileSync(world, 'utf8').trimEnd().split('\n') : [];
}
