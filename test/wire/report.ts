// Wires that failed as a table, and as the page that such a run writes about itself.

import { markdownTable } from '../crash/table.ts';
import { circumstances } from '../processes/evidence.ts';
import { manners, type WireReport } from './wire.ts';

export function wireTable(reports: readonly WireReport[]): string {
  const rows = reports.map(({ operation, frames, faults, hits, refused, wrong }) => [
    operation,
    frames,
    faults,
    hits,
    refused,
    wrong.length,
  ]);
  const sum = (of: (report: WireReport) => number) =>
    reports.reduce((total, report) => total + of(report), 0);
  const total = [
    'all',
    sum(({ frames }) => frames),
    sum(({ faults }) => faults),
    sum(({ hits }) => hits),
    sum(({ refused }) => refused),
    sum(({ wrong }) => wrong.length),
  ];
  const head = ['operation', 'messages', 'faults', 'that met their message', 'refused', 'wrong'];
  return markdownTable(head, [...rows, total]);
}

export function wireEvidence(reports: readonly WireReport[], place: string, command: string): string {
  const { commit, machine, date } = circumstances(command);
  const said = manners.map((fault) => (typeof fault === 'object' ? `delay ${fault.delayMs} ms` : fault));
  return `# A wire that fails: ${place}

Written by \`${command}\` on ${date}; do not edit.

Between the store and a real server stands a proxy that knows the messages of the protocol. Each operation is done once
to count its messages, then again for each message and each manner in which a network can treat it (${said.join(', ')}).
Each time the operation answers as it did on the clean wire, or says STORE_UNAVAILABLE ("refused"); asked again with the
same token it answers as on the clean wire; the record and its history are what they would be, nothing is there twice;
and the store has found its way back by itself.

| | |
|---|---|
| commit | ${commit} |
| command | \`${command}\` |
| machine | ${machine} |

${wireTable(reports)}
`;
}
