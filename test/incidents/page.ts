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

/** One row per incident: what landed bare, with semel, and with one more line in the contract. */
export function summaryTable(incidents: readonly Incident[], linked: (incident: Incident) => string): string {
  return markdownTable(
    ['incident', 'wanted', 'bare', 'semel', 'semel, with'],
    incidents.map((incident) => {
      const [bare, ...others] = incident.ways;
      const plain = others.find(({ name }) => name === 'semel');
      const more = others.filter((way) => way !== plain);
      return [
        linked(incident),
        incident.wanted,
        bare === undefined ? '' : landedIn(bare),
        plain === undefined ? '' : landedIn(plain),
        more.map((way) => `${way.name.replace('semel, ', '')}: ${landedIn(way)}`).join('; '),
      ];
    }),
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

For anyone who wants to see what goes wrong in production, and the contract that prevents it. Each incident is played by real processes
against a target that counts effects. *bare* is how it was done when it happened. **In doubt** means that semel neither repeated nor dropped
the effect: it stays listed until code or a person decides.

The numbers are effects that landed:

${summaryTable(incidents, ({ title }) => `[${title}](#${anchorOf(title)})`)}

\`npm run incidents\` plays them and writes this page.

${incidents.map(section).join('\n')}`;
}

function section(incident: Incident, index: number, all: readonly Incident[]): string {
  const { title, file, happened, ways } = incident;
  const name = file.replace('./', 'test/incidents/');
  const twin = all.slice(0, index).find((earlier) => earlier.file === file);
  const results = ways.map(({ name: way, comes }) => `- **${way}**: ${comes}`).join('\n');
  return `## ${title}

${happened}

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
  return `The contract: \`${terms.join(', ')}\`. The program: [${name}](../../${name}).`;
}

function excerpt(name: string, incident: Incident): string {
  return `\`\`\`ts no-check="an excerpt of ${name}, which the test suite plays"\n${contractOf(incident)}\n\`\`\``;
}

function scriptOf(name: string, script: string): string {
  return `\`\`\`sh no-run="${name} plays it with a target of its own"\n${script.trim()}\n\`\`\``;
}
