// The incidents as a table, and as the page docs/guides/incidents.md.

import { markdownTable } from '../crash/table.ts';
import type { Incident, Way } from './incident.ts';
import { contractOf } from './stage.ts';

export interface Played {
  readonly incident: string;
  readonly way: string;
  readonly wanted: number;
  readonly effects: number;
  readonly inDoubt: number;
}

export function outcomeTable(rows: readonly Played[]): string {
  return markdownTable(
    ['incident', 'way', 'wanted', 'effects', 'in doubt'],
    rows.map(({ incident, way, wanted, effects, inDoubt }) => [incident, way, wanted, effects, inDoubt]),
  );
}

function landedIn({ effects, inDoubt }: Way): string {
  return inDoubt === 0 ? String(effects) : `${effects}, in doubt`;
}

/** As GitHub makes it. */
export function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-');
}

export function page(incidents: readonly Incident[]): string {
  return `# Incidents

For anyone who looks for an accident like theirs, and for the contract that prevents it. \`npm run incidents\` plays each with real processes, against a
target that counts effects, and writes this page. *Bare* is how it was done; *in doubt*, code or a person decides.

${incidents.map(section).join('\n')}`;
}

function section(incident: Incident): string {
  const { title, file, happened, answer, wanted, ways } = incident;
  const name = file.replace('./', 'test/incidents/');
  const landed = ways.map((way) => `${way.name.replace('semel, ', 'with ')} **${landedIn(way)}**`).join(', ');
  return `## ${title}

${happened}${answer === undefined ? '' : ` With semel: ${answer}`}

Landed: ${landed}${wanted === 1 ? '' : `, wanted ${wanted}`}.${ownContract(name, incident)}
`;
}

function ownContract(name: string, incident: Incident): string {
  if (incident.script !== undefined) return `\n\n${scriptOf(name, incident.script)}`;
  const terms = contractOf(incident).match(termLine) ?? [];
  // The rest of a contract's excerpt is scenery of the test.
  return terms.length === 0
    ? ` [Program](../../${name}).`
    : ` [Contract](../../${name}): \`${terms.join(', ')}\``;
}

const termLine =
  /(?<=^ {2})(?:effect|stakes|per|identity|content|volatile|dispatch|provider|via): .*(?=,$)/gm;

function scriptOf(name: string, script: string): string {
  return `\`\`\`sh no-run="${name} plays it"\n${script.trim()}\n\`\`\``;
}
