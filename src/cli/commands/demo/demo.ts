// `semel demo`: plays three incidents with real processes, a real server and a real ledger, bare and with semel, and
// counts what landed. Touches nothing of the user's.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { command } from '../../command.ts';
import { choice } from '../../flags.ts';
import { print, printable, printJson, printRows, styled } from '../../render/print.ts';
import { table } from '../../render/table.ts';
import { textWidth, wrapParagraphs } from '../../render/wrap.ts';
import { usageError } from '../../usage.ts';
import type { Incident } from './incident.ts';
import { incidents } from './incidents.ts';
import { type Outcome, play } from './stage.ts';

export default command({
  name: 'demo',
  takes: '[options]',
  about: `Plays three incidents twice, bare and with semel: really kills processes, and counts what landed with a server on this
machine. Takes a few seconds, needs no network, and leaves nothing behind. Exits with 1 if an effect did not land exactly
once with semel.`,
  flags: {
    only: choice(['1', '2', '3'], 'only this incident'),
  },
  examples: ['semel demo', 'semel demo --only 2', 'semel demo --json'],
  async run({ values, positionals }) {
    if (positionals.length > 0) throw usageError('demo', 'takes no arguments, only options');
    if (values.store !== undefined || values.namespace !== undefined)
      throw usageError('demo', 'it uses its own ledger', 'Leave out --store and --namespace.');
    const chosen = incidents.map((_, at) => at).filter((at) => !values.only || values.only === `${at + 1}`);
    const tell = values.json ? () => undefined : print;
    const startedAt = performance.now();
    const played = await inTemporaryFolder((folder) => playAll(chosen, folder, tell));
    const tookMs = Math.round(performance.now() - startedAt);
    const kept = played.every(({ semel }) => semel.landed === 1);
    if (values.json) printJson({ kept, tookMs, incidents: played.map(reported) });
    else {
      printRows(...results(played));
      print('', ending(kept, tookMs));
    }
    return kept ? 0 : 1;
  },
});

interface Played {
  readonly at: number;
  readonly incident: Incident;
  readonly bare: Outcome;
  readonly semel: Outcome;
}

async function playAll(
  chosen: readonly number[],
  folder: string,
  tell: (...lines: string[]) => void,
): Promise<readonly Played[]> {
  const played: Played[] = [];
  const say = (text: string) => tell(printable(`    ${text}`));
  for (const at of chosen) {
    const incident = incidents[at] as Incident;
    tell(styled('bold', `${at + 1}. ${incident.title}`), ...wrapParagraphs(incident.happened, textWidth()));
    tell('  bare');
    const bare = await play(at, 'bare', folder, say);
    tell(`    ${landedStyled(incident, bare)}`, '  with semel');
    const semel = await play(at, 'semel', folder, say);
    tell(`    ${landedStyled(incident, semel)}`, '');
    played.push({ at, incident, bare, semel });
  }
  return played;
}

/** Gone at the end, also when somebody has seen enough. */
async function inTemporaryFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'semel-demo-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const stop = () => process.exit(130);
  process.once('exit', remove);
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    return await work(folder);
  } finally {
    process.off('exit', remove);
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
    remove();
  }
}

function landedText({ effect: [one, many] }: Incident, { landed, inDoubt }: Outcome): string {
  const times = `${landed} ${landed === 1 ? one : many}`;
  return inDoubt === 0 ? times : `${times}, in doubt until decided`;
}

function landedStyled(incident: Incident, outcome: Outcome): string {
  return styled(outcome.landed === 1 ? 'green' : 'red', `landed: ${landedText(incident, outcome)}`);
}

function reported({ at, incident, bare, semel }: Played) {
  return { incident: at + 1, title: incident.title, bare, semel, kept: semel.landed === 1 };
}

function results(played: readonly Played[]): readonly string[] {
  const rows = played.map(({ at, incident, bare, semel }) => [
    `${at + 1}. ${incident.title}`,
    {
      text: landedText(incident, bare),
      ...(bare.landed === 1 ? {} : { style: 'red' as const }),
    },
    { text: landedText(incident, semel), style: semel.landed === 1 ? ('green' as const) : ('red' as const) },
  ]);
  return table(['incident', 'bare', 'with semel'], rows);
}

function ending(kept: boolean, tookMs: number): string {
  return kept
    ? `Every effect landed once with semel (${(tookMs / 1000).toFixed(1)} s). Next: semel --help, or docs/start/README.md in the package.`
    : 'An effect did not land exactly once with semel. That is a bug: please report it with the lines above.';
}
