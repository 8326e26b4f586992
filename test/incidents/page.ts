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

For anyone who looks for an accident like theirs, and for the contract that prevents it. Real processes play each one against a target that
counts effects. The bold number is how many landed: *bare*, as it was done when it happened, and with semel. **In doubt** means that semel
neither repeated nor dropped the effect: code or a person decides.

${incidents.map(section).join('\n')}
\`npm run incidents\` plays them and writes this page.
`;
}

function section(incident: Incident, index: number, all: readonly Incident[]): string {
  const { title, file, happened, wanted, ways } = incident;
  const name = file.replace('./', 'test/incidents/');
  const twin = all.slice(0, index).find((earlier) => earlier.file === file);
  const results = ways
    .map((way) => `- ${way.name.replace('semel, ', 'semel with ')} **${landedIn(way)}**: ${way.comes}`)
    .join('\n');
  return `## ${title}

${happened}${wanted === 1 ? '' : ` Wanted: ${wanted}.`}

${results}

${twin === undefined ? ownContract(name, incident) : `Its contract: see [${twin.title}](#${anchorOf(twin.title)}).`}
`;
}

function ownContract(name: string, incident: Incident): string {
  if (incident.script !== undefined) return scriptOf(name, incident.script);
  const terms = contractOf(incident).match(termLine) ?? [];
  // The rest of a contract's excerpt is scenery of the test.
  return terms.length === 0 ? excerpt(name, incident) : termsOf(name, terms);
}

const termLine =
  /(?<=^ {2})(?:effect|stakes|per|identity|content|volatile|dispatch|provider|window|via): .*(?=,$)/gm;

function termsOf(name: string, terms: readonly string[]): string {
  return `\`${terms.join(', ')}\` ([program](../../${name}))`;
}

function excerpt(name: string, incident: Incident): string {
  if (contractOf(incident).includes('\n')) return `How: [${name}](../../${name}).`;
  return `\`\`\`ts no-check="an excerpt of ${name}"\n${contractOf(incident)}\n\`\`\``;
}

function scriptOf(name: string, script: string): string {
  return `\`\`\`sh no-run="${name} plays it"\n${script.trim()}\n\`\`\``;
}
