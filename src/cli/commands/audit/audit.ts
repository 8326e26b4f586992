// `semel audit`: duplicates in the logs that people already have. Needs no ledger, and writes nothing.

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
  about: `Looks for calls that were made more than once: the same fields again within a time, the same call under different keys,
one key for different calls, repeats right after a restart. Fields are dotted paths; args that are JSON in a text are looked
into. What is not said is guessed from the first lines, and told. Exit code 1 if anything was found. No ledger is needed.`,
  flags: {
    same: text('<a,b.c>', 'the fields that two calls share if they are one'),
    within: text('<duration>', 'how long after the last one it counts (default 1h)'),
    time: text('<field>', 'when the call was made'),
    key: text('<field>', 'the key that it was made under'),
    restart: text('<regex>', 'what a line looks like when the program starts'),
    near: text('<duration>', 'how long after a restart is right after it (default 30s)'),
    where: texts('<field>=<value>', 'only these lines: status=done'),
    tool: text('<name>', 'only calls of this tool'),
    format: choice(['jsonl', 'csv'], 'default: by the first line'),
    limit: text('<number>', 'how many groups to print (default 20)'),
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
        'it takes one file',
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
      `--restart is no regular expression (${(error as Error).message})`,
      'Escape what is meant as it is.',
    );
  }
}

function nothing({ missing, fields, asked = [] }: Missing): SemelError {
  const seen = `The lines have: ${fields.join(', ')}.`;
  switch (missing) {
    case 'lines':
      return usageError('audit', 'no line of it is a JSON object or a row of CSV', 'Try --format jsonl|csv.');
    case 'calls':
      return usageError('audit', `no line has all of ${asked.join(', ')}`, seen);
    case 'time':
      return usageError('audit', 'no field is a time', `Name it by --time. ${seen}`);
    case 'same':
      return usageError(
        'audit',
        'which fields make a call cannot be guessed',
        `Name them by --same. ${seen}`,
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
