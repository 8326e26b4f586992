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
counts effects: *bare*, as it was done when it happened, and with semel. **In doubt** means that semel neither repeated nor dropped the effect: code
or a person decides. \`npm run incidents\` plays them and writes this page.

${incidents.map(section).join('\n')}`;
}

function section(incident: Incident, index: number, all: readonly Incident[]): string {
  const { title, file, happened, wanted, ways } = incident;
  const name = file.replace('./', 'test/incidents/');
  const twin = all.slice(0, index).find((earlier) => earlier.file === file);
  const [bare, ...others] = ways;
  const best = others.at(-1);
  // What asking the target or its key brings is the same each time, and the numbers say it.
  const isPlain = best !== undefined && !/verify|provider/.test(best.name);
  const answer = isPlain ? ` With ${best.name.replace(',', ' and')}: ${best.comes}` : '';
  const landed = ways.map((way) => `${way.name.replace('semel, ', 'with ')} **${landedIn(way)}**`).join(', ');
  return `## ${title}

${happened} ${bare?.comes}${answer}

Landed: ${landed}${wanted === 1 ? '' : `, wanted ${wanted}`}.${
    twin === undefined
      ? ownContract(name, incident)
      : ` The contract is [the same](#${anchorOf(twin.title)}).`
  }
`;
}

function ownContract(name: string, incident: Incident): string {
  if (incident.script !== undefined) return `\n\n${scriptOf(name, incident.script)}`;
  const terms = contractOf(incident).match(termLine) ?? [];
  const program = ` ([program](../../${name}))`;
  // The rest of a contract's excerpt is scenery of the test.
  return terms.length === 0 ? program : ` \`${terms.join(', ')}\`${program}`;
}

const termLine =
  /(?<=^ {2})(?:effect|stakes|per|identity|content|volatile|dispatch|provider|window|via): .*(?=,$)/gm;

function scriptOf(name: string, script: string): string {
  return `\`\`\`sh no-run="${name} plays it"\n${script.trim()}\n\`\`\``;
}
