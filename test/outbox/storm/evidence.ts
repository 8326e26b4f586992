// An outbox storm as a table, and as the page that it writes about itself.

import { markdownTable } from '../../crash/table.ts';
import { circumstances } from '../../processes/evidence.ts';
import type { OutboxStormOptions, OutboxStormReport } from './storm.ts';
import { contracts, forgetful } from './terms.ts';

export function summary(report: OutboxStormReport): string {
  return markdownTable(
    ['what', 'count'],
    [
      ['duration', `${Math.round(report.seconds)} s`],
      ['relays killed (SIGKILL)', report.faults.relayKill],
      ['stagers killed (SIGKILL)', report.faults.stagerKill],
      ['relays and stagers stopped past their lease (SIGSTOP)', report.faults.stop],
      ['database connections cut', report.faults.cut],
      ['intents committed', report.committed],
      ['… of which have an order', report.grouped],
      ['effects at the targets', report.effects],
      ['looks at a doubt by the person in the storm', report.doubts],
      ['decisions about a dead row', report.dead],
      ['… that it is delivered again, after its record was gone', report.orphans],
      ['repeats that were accepted', report.accepted],
      ['intents that were given up', report.givenUp],
      ['intents that were dropped', report.dropped],
      ['violations', report.violations.length],
    ],
  );
}

export function outboxEvidence(
  report: OutboxStormReport,
  command: string,
  { seed, relays, stagers }: OutboxStormOptions,
): string {
  const { commit, machine, date } = circumstances(command);
  return `# The storm on the outbox: ${report.place}

Written by \`${command}\` on ${date}; do not edit.

${stagers} processes stage intents under ${contracts.length} contracts (${contracts.join(', ')}), each with a row of their own in one
transaction: often the same intent in several, some rolled back, some in strict groups, some not before a given time. ${relays} relays
deliver them to a target in a process of its own, which writes every effect to disk before it answers. Processes are killed or stand still,
connections are cut, and a row is lent again before its relay expects it. The target has moods: it refuses, is overloaded, hangs, or cuts the
line before or after it did what was asked. Somebody decides doubts by what the target shows, now and then accepts a repeat or gives up, and
delivers dead rows again or drops them. Records of \`${forgetful}\` are gone after a second.

| | |
|---|---|
| commit | ${commit} |
| command | \`${command}\` |
| seed | ${seed} (chooses whom and when; the machine's own timing is not in it) |
| machine | ${machine} |

${summary(report)}

The verdict is by the committed rows, the log of the target and the ledger at the end: every committed intent was delivered, unless somebody
dropped it; at a keyed target none landed twice, and at any other none more often than somebody had accepted; nothing of a rolled-back
transaction was delivered, nothing before its time; in a group nothing was sent before what was committed earlier had landed and was
decided; no dead row had landed; nothing was left staged or in doubt.
`;
}
