// `semel audit`: finds duplicates in existing logs. Needs no ledger, and writes nothing.

import type { SemelError } from '../../../core/errors.ts';
import { flagReader } from '../../args/flag-values.ts';
import { linesOf, textOf } from '../../args/input.ts';
import { command } from '../../command.ts';
import { choice, text, texts } from '../../flags.ts';
import { print, printJson } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { entriesOf, longestLine } from './entries.ts';
import { type Missing, type Reading, type ReadingOptions, readLog } from './reading.ts';
import { reportOf, sentence, suggestionsOf } from './report.ts';

export default command({
  name: 'audit',
  takes: '<file.jsonl|file.csv|-> [--same tool,args.lead] [--within 5m] [options]',
  about: `Finds calls that were made more than once: the same fields within a short time, the same call under different keys, one key for
different calls, repeats right after a restart. Fields are dotted paths, also into JSON inside a string. Fields you do not
name are guessed from the first lines, and reported. Exits with 1 if anything was found. Needs no ledger.`,
  flags: {
    same: text('<a,b.c>', 'fields that make two calls the same'),
    within: text('<duration>', 'maximum time between repeats (default: 1h)'),
    time: text('<field>', 'field with the time of the call'),
    key: text('<field>', 'field with its idempotency key'),
    restart: text('<regex>', 'matches a line that the program prints when it starts'),
    near: text('<duration>', 'how soon after a restart a repeat counts as near it (default: 30s)'),
    where: texts('<field>=<value>', 'only lines with this value: status=done'),
    tool: text('<name>', 'only calls of this tool'),
    format: choice(['jsonl', 'csv'], 'format of the file (default: by its first line)'),
    limit: text('<number>', 'maximum number of groups to print (default: 20)'),
  },
  examples: [
    'semel audit calls.jsonl --same tool,args.lead --within 5m',
    'kubectl logs worker | semel audit - --restart "worker started"',
    'semel audit sent.csv --same recipient,template --within 1d --json',
  ],
  async run({ values, positionals }) {
    const [path] = positionals;
    if (path === undefined || positionals.length > 1)
      throw usageError(
        'audit',
        'expects one file',
        'Write: semel audit <file.jsonl>, or - for standard input.',
      );
    const given = flagReader('audit', values);
    const limit = given.whole('limit', 20, { from: 1, to: 10_000 });
    const options: ReadingOptions = {
      same: values.same?.split(',').map((each) => each.trim()),
      time: values.time,
      key: values.key,
      tool: values.tool,
      where: given.pairs('where', 'status=done'),
      restart: values.restart === undefined ? undefined : regexOf(values.restart),
      withinMs: given.duration('within', 3_600_000),
      nearMs: given.duration('near', 30_000),
    };
    const reading = await readLog(
      entriesOf(linesOf(textOf('audit', path, 'lenient'), longestLine), values.format),
      options,
    );
    if ('missing' in reading) throw nothing(reading);
    const { found } = reading;
    if (values.json) printJson(jsonOf(reading, options, limit));
    else print(...reportOf(reading, { ...options, limit }));
    return found.repeats > 0 || found.reuses.length > 0 ? 1 : 0;
  },
});

function regexOf(text: string): RegExp {
  try {
    return new RegExp(text, 'i');
  } catch (error) {
    throw usageError(
      'audit',
      `--restart is not a regular expression (${(error as Error).message})`,
      'Escape special characters with a backslash.',
    );
  }
}

function nothing({ missing, fields, asked = [] }: Missing): SemelError {
  const seen = `The lines have: ${fields.join(', ')}.`;
  switch (missing) {
    case 'lines':
      return usageError('audit', 'no line is a JSON object or a CSV row', 'Try --format jsonl|csv.');
    case 'calls':
      return usageError('audit', `no line has all of ${asked.join(', ')}`, seen);
    case 'time':
      return usageError('audit', 'no field holds a time', `Name it with --time. ${seen}`);
    case 'same':
      return usageError(
        'audit',
        'cannot guess which fields identify a call',
        `Name them with --same. ${seen}`,
      );
  }
}

function jsonOf(reading: Reading, { withinMs, nearMs }: ReadingOptions, limit: number) {
  const { found, chosen, lines, notCompared, unreadable, unreadableLines } = reading;
  const { groups, reuses, moreGroups, moreReuses, ...counts } = found;
  const iso = (at: number) => new Date(at).toISOString();
  return {
    summary: sentence(reading, { nearMs }),
    lines,
    ...counts,
    groupCount: groups.length + moreGroups,
    reuseCount: reuses.length + moreReuses,
    notCompared,
    unreadable,
    unreadableLines,
    compared: {
      same: chosen.same,
      time: chosen.time,
      key: chosen.key ?? null,
      withinMs,
      guessed: chosen.guessed,
    },
    groups: groups.slice(0, limit).map((group) => ({
      ...group,
      keys: [...group.keys],
      wordings: group.wordings.size,
      calls: group.calls.map((call) => ({ ...call, at: iso(call.at) })),
      restart: group.restart === undefined ? null : { ...group.restart, at: iso(group.restart.at) },
    })),
    reuses: reuses.slice(0, limit).map((reuse) => ({
      ...reuse,
      calls: reuse.calls.map((call) => ({ ...call, at: iso(call.at) })),
    })),
    suggestions: suggestionsOf(reading),
  };
}
