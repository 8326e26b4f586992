// The incidents as a table, and as the page docs/incidents.md.

import { markdownTable } from '../crash/table.ts';
import type { Incident } from './incident.ts';
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

export function page(incidents: readonly Incident[]): string {
  const rows = incidents.flatMap(({ title, wanted, ways }) =>
    ways.map(({ name, effects, inDoubt }) => ({ incident: title, way: name, wanted, effects, inDoubt })),
  );
  return `# Incidents

Things that happened to people, played with real processes, a real ledger and a target in a process of its own that
writes down every effect: \`npm run incidents\` plays them and writes this page, and the test suite asserts the numbers.
*bare* is how it was done when it happened; the other ways are contracts. "In doubt" is what semel neither repeated nor
dropped on its own: it is listed, with the evidence, until code or a person decides.

${outcomeTable(rows)}

${incidents.map(section).join('\n')}`;
}

function section(incident: Incident): string {
  const { title, file, happened, ways } = incident;
  const name = file.replace('./', 'test/incidents/');
  const told = ways.map(({ name: way, comes }) => `- **${way}**: ${comes}`).join('\n');
  return `## ${title}

${happened}

${told}

${incident.script === undefined ? excerpt(name, incident) : scriptOf(name, incident.script)}
`;
}

function excerpt(name: string, incident: Incident): string {
  return `\`\`\`ts no-check="an excerpt of ${name}, which the test suite plays"\n${contractOf(incident)}\n\`\`\``;
}

function scriptOf(name: string, script: string): string {
  return `\`\`\`sh no-run="${name} plays it with a target of its own"\n${script.trim()}\n\`\`\``;
}
