// What `semel explain` can explain: the sections and table rows of the documentation that ships with the package.

import { findSimilar } from '../../../core/contract/known-fields.ts';
import { readPackageFile } from '../../package-file.ts';
import { readTables } from '../../render/markdown.ts';

export interface Topic {
  readonly name: string;
  readonly kind: string;
  /** Where it is in the package: `docs/reference/errors.md#in_doubt`. */
  readonly page: string;
  /** Markdown. */
  readonly text: string;
}

interface Source {
  readonly kind: string;
  readonly page: string;
  /** Only this section's table rows are topics. Without it every section is one. */
  readonly rowsUnder?: readonly string[];
}

const contracts = 'docs/reference/contracts.md';

/** Errors first: that is what people come with. */
const sources: readonly Source[] = [
  { kind: 'error', page: 'docs/reference/errors.md' },
  { kind: 'refusal of semel serve', page: 'docs/reference/http-api.md', rowsUnder: ['Refusals'] },
  { kind: 'finding of semel doctor', page: 'docs/operate/doctor.md' },
  { kind: 'exit code', page: 'docs/reference/cli.md', rowsUnder: ['Exit codes'] },
  { kind: 'effect class', page: 'docs/reference/semantics.md', rowsUnder: ['By effect class'] },
  {
    kind: 'contract field',
    page: contracts,
    rowsUnder: [
      'What it is',
      'What the intent is',
      'How long it counts',
      'What to do when',
      'What is known of the target',
      'Where the line is, and what is kept',
    ],
  },
  { kind: 'member of ctx', page: contracts, rowsUnder: ['What the effect gets'] },
  { kind: 'option of a call', page: contracts, rowsUnder: ['What a call takes'] },
  { kind: 'member of a receipt', page: contracts, rowsUnder: ['What a caller gets'] },
  { kind: 'option of createSemel', page: contracts, rowsUnder: ['What createSemel takes'] },
  { kind: 'event', page: 'docs/reference/events.md', rowsUnder: ['Events'] },
  {
    kind: 'word',
    page: 'docs/internals/glossary.md',
    rowsUnder: ['What is asked', 'What is recorded', 'What became of it', 'What a call gets'],
  },
];

export function allTopics(): readonly Topic[] {
  return sources.flatMap(readTopics);
}

/** Every topic of this name. `IN_DOUBT`, `in-doubt` and `in doubt` are one name. */
export function findTopics(topics: readonly Topic[], name: string): readonly Topic[] {
  const wanted = normalise(name);
  return topics.filter((topic) => normalise(topic.name) === wanted);
}

/** The name that somebody seems to have meant. */
export function suggestTopic(topics: readonly Topic[], name: string): string | undefined {
  // The first of a name wins.
  const names = new Map(topics.toReversed().map((topic) => [normalise(topic.name), topic.name]));
  const wanted = normalise(name);
  const near = findSimilar(names.keys(), wanted) ?? [...names.keys()].find((each) => each.includes(wanted));
  return near === undefined ? undefined : names.get(near);
}

function normalise(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[\s_-]+/g, ' ')
    .trim();
}

function readTopics({ kind, page, rowsUnder }: Source): readonly Topic[] {
  const sections = splitSections(readPackageFile(page));
  if (rowsUnder === undefined)
    return sections.slice(1).map(({ title, text }) => ({
      name: kind === 'error' ? title.toUpperCase() : title,
      kind,
      page: `${page}#${anchorOf(title)}`,
      text,
    }));
  return sections
    .filter(({ title }) => rowsUnder.includes(title))
    .flatMap(({ title, text }) =>
      readTables(text).flatMap(({ head, cells }) => {
        const described = describeRow(head, cells);
        return namesIn(cells[0] as string).map((name) => ({
          name,
          kind,
          page: `${page}#${anchorOf(title)}`,
          text: described,
        }));
      }),
    );
}

/** The first cell of a row may name several things: `` `conversation`, `turn`, `run` ``. */
function namesIn(cell: string): readonly string[] {
  return cell.split(/,\s*/).map((name) => name.replaceAll(/[`*]|\(\w*\)/g, ''));
}

interface Section {
  readonly title: string;
  readonly text: string;
}

/** The first one is the page's introduction. */
function splitSections(page: string): readonly Section[] {
  const [, ...parts] = page.split(/^##? (?=.*\n\n)/m);
  return parts.map((part) => {
    const end = part.indexOf('\n');
    return { title: part.slice(0, end), text: part.slice(end + 1).trim() };
  });
}

/** The last column says what it is; the others are named. */
function describeRow(head: readonly string[], cells: readonly string[]): string {
  const named = cells.slice(1).map((cell, at) => [head[at + 1] as string, cell] as const);
  const about = named.filter(([name, cell]) => name === 'meaning' || (name === 'when' && cell !== ''));
  const rest = named.filter((entry) => !about.includes(entry) && entry[1] !== '');
  return [...about.map(([, cell]) => cell), ...rest.map(([name, cell]) => `- ${name}: ${cell}`)].join('\n\n');
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}
