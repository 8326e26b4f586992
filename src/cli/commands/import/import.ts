// `semel import`: imports records of another ledger, or of an action ledger kept by hand. Reads the file twice: first to
// check all of it, before anything is written, then to import it.

import { createReadStream, createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isSemelError } from '../../../core/errors.ts';
import { shellWord } from '../../../core/visible.ts';
import { lazyStoreAt } from '../../../semel/index.ts';
import { flagReader } from '../../args/flag-values.ts';
import { bounded, isStream, linesOf, textOf } from '../../args/input.ts';
import { type Namespaces, namespacesFor, namespacesOf } from '../../args/namespaces.ts';
import { mustBeOperator } from '../../caller.ts';
import { command } from '../../command.ts';
import { text, texts, toggle } from '../../flags.ts';
import { chosenNamespace, type LedgerChoice, namespaceOf } from '../../ledger.ts';
import { complain, print, printable, printJson } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { type Meaning, meanings, meaningsWith, noStatus, type PlainFields } from './plain.ts';
import { type Plan, planOf } from './plan.ts';
import { importLines, type Report, reportLines } from './taking.ts';

export default command({
  name: 'import',
  takes: '<file.jsonl|-> [options]',
  about: `Reads what \`semel export\` wrote, or an action ledger with lines like {"key":"a-1","ts":"…","status":"done"}.
What was done stays done: the same calls are replayed. What was running or in doubt arrives in doubt. Existing records are
left alone, and each record keeps its namespace. Importing twice changes nothing. If a line cannot be read, nothing is
imported.

An action ledger needs --tool; its keys become the caller's own (\`key\` of a call, --key of \`semel once\`), its lines the
values. Statuses like done, ok and sent mean done; pending and started mean in doubt; failed and error are skipped, since
they may run again. Others need --map; to map a line without a status, use none. If a key has several lines, the last counts, or the first that says done.`,
  flags: {
    tool: text('<name>', 'action ledger: the contract of its records'),
    map: texts('<status>=<meaning>', `what a status means: ${meanings.join(', ')}`),
    'key-field': text('<field>', 'action ledger: field with the key (default: guessed)'),
    'time-field': text('<field>', 'action ledger: field with the time'),
    'status-field': text('<field>', 'action ledger: field with the status'),
    window: text(
      '<duration>',
      'action ledger: how long to keep values (default: 30d); keys are kept for good',
    ),
    'skip-bad': toggle('skip lines that cannot be read, and import the others'),
    'dry-run': toggle('only show what would be imported'),
  },
  examples: [
    'semel import ledger.jsonl --store sqlite:new.db',
    'semel import actions.jsonl --tool mail.send --dry-run',
    'semel import actions.jsonl --tool mail.send --map bounced=failed --map handed_over=done',
  ],
  async run({ values, positionals }) {
    if (!values['dry-run']) mustBeOperator('import', 'Importing records');
    const [path] = positionals;
    if (path === undefined || positionals.length > 1)
      throw usageError(
        'import',
        'expects one file',
        'Write: semel import <file.jsonl>, or - for standard input.',
      );
    const mapped = meaningsWith(mapOf(values.map ?? []));
    const windowMs = flagReader('import', values).duration('window', 30 * 86_400_000);
    await using file = await kept(path);
    const plan = await planOf(linesOf(textOf('import', file.path), maxLineLength), {
      meanings: mapped,
      fields: given(values),
    });
    await using ledger = ledgerOf(values, values['dry-run'] ?? false);
    check(plan, values, ledger.chosen);
    for (const { line, because } of plan.bad) complain(`line ${line} was skipped: ${because}.`);
    const report = await importLines(ledger.in, linesOf(textOf('import', file.path), maxLineLength), plan, {
      namespace: namespaceOf(values),
      contract: values.tool ?? '',
      meanings: mapped,
      windowMs,
      dryRun: values['dry-run'] ?? false,
    });
    if (values.json) printJson(report satisfies Report);
    else print(...reportLines(report).map(printable));
    return 0;
  },
});

/** Room for the largest result that `semel once` keeps, encoded, and for its history. */
const maxLineLength = 64 * 1_048_576;

function mapOf(entries: readonly string[]): ReadonlyMap<string, Meaning> {
  return new Map(
    entries.map((entry) => {
      const at = entry.lastIndexOf('=');
      const meaning = entry.slice(at + 1) as Meaning;
      if (at < 1 || !meanings.includes(meaning))
        throw usageError(
          'import',
          `--map ${entry} is not valid`,
          `Write --map <status>=${meanings.join('|')}.`,
        );
      return [entry.slice(0, at), meaning];
    }),
  );
}

interface Given {
  readonly tool?: string | undefined;
  readonly 'skip-bad'?: boolean | undefined;
  readonly 'key-field'?: string | undefined;
  readonly 'time-field'?: string | undefined;
  readonly 'status-field'?: string | undefined;
}

function given(values: Given): Partial<PlainFields> {
  const named = { key: values['key-field'], time: values['time-field'], status: values['status-field'] };
  return Object.fromEntries(Object.entries(named).filter(([, field]) => field !== undefined));
}

/** Refuses a bad file before anything is written. */
function check(plan: Plan, { tool, 'skip-bad': skipBad }: Given, chosen: string | undefined): void {
  const refuse = (happened: string, next: string): never => {
    throw usageError('import', `${happened}. Nothing was imported`, next);
  };
  if (plan.lines === 0) refuse('the file has no lines', 'Check that it is the right one.');
  if (plan.badCount > 0 && !skipBad) {
    const named = plan.bad.slice(0, 10).map(({ line, because }) => `line ${line}: ${because}`);
    const more = plan.badCount > named.length ? `; and ${plan.badCount - named.length} more` : '';
    refuse(
      `${plan.badCount} of ${plan.lines} lines cannot be read (${named.join('; ')}${more})`,
      'Correct them, or skip them with --skip-bad.',
    );
  }
  if (plan.form === 'semel') {
    const [other] = [...plan.namespaces].filter((each) => each !== chosen);
    if (chosen !== undefined && other !== undefined)
      refuse(
        `the file has records of namespace ${JSON.stringify(other)}, not ${JSON.stringify(chosen)}, and the namespace is part of their keys`,
        'Leave out --namespace and SEMEL_NAMESPACE: each record keeps its own.',
      );
    return;
  }
  if (tool === undefined)
    refuse(
      'these are not lines of `semel export`',
      'If it is an action ledger, name the contract of its records: --tool <name>.',
    );
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(tool as string))
    refuse(
      `${JSON.stringify(tool)} is not a valid contract name`,
      'Use 1 to 64 letters, digits, dots, dashes or underscores.',
    );
  if (plan.unknown.size > 0) {
    const named = [...plan.unknown].slice(0, 10).map(([status, line]) => `"${status}" (line ${line})`);
    const [first] = plan.unknown.keys();
    const advice =
      first === noStatus
        ? 'Some lines have no status. If such a line means that it was done: --map none=done.'
        : `Map them: --map ${shellWord(first ?? '')}=${meanings.join('|')}.`;
    refuse(`these statuses are unknown: ${named.join(', ')}`, advice);
  }
}

/** Standard input can be read only once: copies it to a file. */
async function kept(path: string): Promise<AsyncDisposable & { readonly path: string }> {
  if (!isStream(path)) return { path, [Symbol.asyncDispose]: async () => undefined };
  const folder = mkdtempSync(join(tmpdir(), 'semel-import-'));
  const remove = async () => rmSync(folder, { recursive: true, force: true });
  try {
    const copy = join(folder, 'input');
    const source = path === '-' ? process.stdin : createReadStream(path);
    await pipeline(bounded('import', source), createWriteStream(copy, { mode: 0o600 }));
    return { path: copy, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

function ledgerOf(choice: LedgerChoice, dryRun: boolean): Namespaces {
  if (!dryRun) return namespacesFor(choice, { make: true });
  try {
    return namespacesFor(choice);
  } catch (error) {
    if (!isSemelError(error, 'STORE_UNAVAILABLE')) throw error;
    // A dry run creates no ledger: uses an empty one instead.
    return namespacesOf(lazyStoreAt('memory:', {}), chosenNamespace(choice), { onWarning: () => undefined });
  }
}
