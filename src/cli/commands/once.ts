// `semel once`: guards one effect. Options and messages only; the work is in src/jobs.

import type { Per } from '../../core/contract/period.ts';
import { commandField } from '../../core/contract/words.ts';
import {
  type ChildEnding,
  contractName,
  currentRun,
  type Ids,
  isReserved,
  isUnit,
  periodNamed,
  type Report,
  resultBytes,
  runEffect,
  shownOwner,
} from '../../jobs/index.ts';
import { exitCodes, flagReader, parseDuration } from '../args/flag-values.ts';
import { identityOf, idsOf } from '../args/ids.ts';
import { zoneOf } from '../args/zone.ts';
import { ledgerNote, mustBeOperator } from '../caller.ts';
import { command, type ValuesOf } from '../command.ts';
import { choice, choiceOrDuration, text, texts, toggle } from '../flags.ts';
import {
  createReporter,
  describeDone,
  describeNoStart,
  type Guard,
  guardedLine,
  guardFlags,
  guardTerms,
  labelOf,
  newPipeName,
  runGuarded,
} from '../guarded.ts';
import { writeResult } from '../render/output.ts';
import { sinceOf } from '../render/state.ts';
import { usageError } from '../usage.ts';

const flags = {
  id: texts(
    '<name=value>',
    'what identifies the effect; repeatable. Values are text: for a number, use --id-json',
  ),
  'id-json': text('<json|file|->', 'the same as a JSON object, with numbers as numbers'),
  content: texts(
    '<name=value>',
    'what may be worded differently: differences are reported, not run; repeatable',
  ),
  key: text('<key>', 'your own key, instead of one derived from the ids'),
  per: choiceOrDuration(
    ['run', 'minute', 'hour', 'day', 'week', 'month', 'ever'],
    'how often it may be done; 24h: not again until 24h after it was done (default: once ever with --id, otherwise once per run)',
  ),
  at: text('<instant>', 'the instant that selects the period of --per (default: now)'),
  tz: text('<zone>', "time zone of --per (default: the run's, otherwise TZ)"),
  window: text('<duration>', 'how long to keep the result after its period (default: 30d)'),
  again: text('<why>', 'do it once more on purpose; the reason is kept in the history'),
  'if-busy': choice(['wait', 'skip', 'fail'], 'what to do while another call is running (default: wait)'),
  wait: text('<duration>', 'how long to wait (default: as long as it takes)'),
  'not-landed-exit': text('<codes>', 'exit codes that mean "it did not land": 6,7'),
  'if-unknown': choice(
    ['hold', 'rerun'],
    'rerun: the command is safe to repeat, as when it passes SEMEL_KEY_UUID, which stays the same, to a provider that honours keys (default: hold)',
  ),
  verify: text('<command>', 'decides a doubt: exit 0 means landed (its stdout is the result), 1 not landed'),
  'verify-after': text('<duration>', 'trust "not landed" only after this delay (default: 60s)'),
  ...guardFlags,
  'skip-code': text('<code>', 'exit code when nothing was run (default: 0)'),
  quiet: toggle('do not report what was done before', 'q'),
} as const;

export default command({
  name: 'once',
  takes: '<name> [--id k=v]… [options] -- <command> [args…]',
  about: `The first success is remembered: later calls print the same stdout, run nothing, and exit with 0. A command that failed
or was killed may have landed: it is in doubt (exit 76) until a verifier or a person decides. With --id: once ever;
without, inside \`semel run\`: once per slot. The command gets SEMEL_KEY and SEMEL_KEY_UUID to pass on to the provider. Your
shell must not expand them, so write sh -c '…' with single quotes. stdout belongs to the command: --json prints one line
about the effect on stderr.`,
  flags,
  examples: [
    'semel once mail --id lead=42 --id template=welcome -- ./send.sh 42 welcome',
    'semel once publish --verify ./is-it-live.sh -- ./publish.sh post.md',
    `semel once charge --id order=7 -- sh -c 'curl -fsS -H "Idempotency-Key: $SEMEL_KEY_UUID" https://…'`,
  ],
  async run(input) {
    const { values } = input;
    if (values.again !== undefined) mustBeOperator('once', 'Repeating it on purpose (--again)');
    const { name, words } = guardedLine('once', 'effect', input, '--id … -- ./send.sh');
    if (isReserved(contractName(undefined, name)))
      throw usageError(
        'once',
        'names that start with run., lock., step., pick. or step-order. are reserved for jobs',
        'Use another name.',
      );
    const inside = currentRun();
    const ids = identityOf('once', values);
    const hasIdentity = Object.keys(ids).length > 0 || values.key !== undefined;
    const unit = values.per ?? (hasIdentity ? 'ever' : 'run');
    if (unit === 'run' && inside === undefined)
      throw usageError(
        'once',
        hasIdentity ? '--per run needs a run' : 'nothing identifies the effect',
        'Add --id name=value, or call it inside `semel run`.',
      );
    const isTtl = parseDuration(unit) !== undefined;
    if (isTtl && values.window !== undefined)
      throw usageError(
        'once',
        '--window has no meaning with a TTL',
        `--per ${unit} says how long: leave --window out.`,
      );
    if (!hasIdentity && (unit === 'ever' || isTtl))
      throw usageError('once', 'nothing identifies the effect', 'Add --id name=value.');
    const given = flagReader('once', values);
    const terms = {
      ...guardTerms(given),
      windowMs: given.duration('window', unit === 'run' ? inside?.windowMs : undefined),
      notLandedExits: exitsOf(values['not-landed-exit']),
    };
    const skipCode = given.whole('skip-code', 0, exitCodes);
    const zone = zoneOf(values.tz, inside?.zone);
    const at = given.instant('at', zone);
    const content = contentOf(values.content, ids);
    const per: Per = isUnit(unit) ? periodNamed(unit, zone) : unit;
    const label = labelOf(name, ids);
    return runGuarded(
      values,
      newPipeName(),
      { resultBytes },
      (guard) =>
        runEffect({
          ...guard,
          contract: contractName(undefined, name),
          args: ids,
          content,
          per,
          callOptions: {
            ...(at === undefined ? {} : { at }),
            ...(values.key === undefined ? {} : { key: values.key }),
            ...(values.again === undefined ? {} : { again: values.again }),
          },
          command: words,
          env: { SEMEL_ID: JSON.stringify(ids) },
          ifBusy: values['if-busy'] ?? 'wait',
          ifUnknown: values['if-unknown'] ?? 'hold',
          verify: values.verify,
          ...terms,
          passOn: true,
        }),
      (report, guard) => tell(report, guard, { name, label, command: words, skipCode, values }),
    );
  },
});

interface Call {
  readonly name: string;
  readonly label: string;
  readonly command: readonly string[];
  readonly skipCode: number;
  readonly values: ValuesOf<typeof flags> & { readonly json: boolean | undefined };
}

/** The stored output on stdout, messages on stderr, and the exit code. */
async function tell(report: Report, { semel, facts }: Guard, call: Call): Promise<number> {
  const { name, label, command, skipCode, values } = call;
  const ledger = facts.location;
  const { say, finish, refuse } = createReporter(values.json, { name }, ledger);
  switch (report.kind) {
    case 'ran': {
      const { ending, attempt, leftBehind } = report;
      if (leftBehind) {
        say(
          `${label} failed with exit ${ending.exit}, but processes it started are still running: it may land`,
        );
        say('the next call finds it busy, and in doubt once they have ended; semel doubt lists it then');
        return finish('left behind', 76);
      }
      if (ending.neverStarted) say(describeNoStart(command, ending));
      else if (ending.exit !== 0) say(`${label} did not land (exit ${ending.exit}): the next call runs it`);
      else if (ending.stdout === undefined)
        say(
          `${label} printed ${ending.stdoutBytes} bytes, more than can be stored: later calls print nothing`,
        );
      if (ending.exit === 0 && ending.lostOutput) {
        say(`${label} is done, but its output could not be passed on: call it again to print it`);
        return finish('succeeded', 74, { attempt });
      }
      return finish(ending.exit === 0 ? 'succeeded' : 'not landed', ending.exit, { attempt });
    }
    case 'done': {
      const { record, ending } = report;
      const more = { record: record.id, doneAt: record.settledAt };
      await writeResult(report.value);
      if (ending !== undefined) {
        say(`${label} exited with ${ending.exit}; the verifier found that it landed`);
        return finish('landed', 0, more);
      }
      const again = values.again === undefined ? '' : ', with the same --again reason';
      const other = describeDrift(report.drift ?? []);
      if (!values.quiet && !values.json)
        say(
          `${label} ${await describeDone(semel, record)}${other}${again}; nothing was run${ledgerNote(ledger)}`,
        );
      return finish('replayed', skipCode, more);
    }
    case 'busy': {
      const { record } = report.holder;
      const isSkip = values['if-busy'] === 'skip';
      const since = `since ${sinceOf(record).toISOString()} by ${shownOwner(record.owner)}`;
      if (!(isSkip && values.quiet))
        say(`${label} is being done ${since}; nothing was run${ledgerNote(ledger)}`);
      return finish('busy', isSkip ? skipCode : 75, { record: record.id });
    }
    case 'refused':
      return refuse(report.error, {
        ...{ label, namespace: semel.namespace, facts, ending: report.ending },
        hasVerify: values.verify !== undefined,
        flags: flagsFor(report.ending),
      });
  }
}

/** The flags that would have decided it. */
function flagsFor(ending: ChildEnding | undefined): string {
  const verify = 'next time, let --verify <command> decide';
  const isOwnCode = ending !== undefined && ending.signal === undefined && ending.exit > 0;
  return isOwnCode
    ? `${verify}, or use --not-landed-exit ${ending.exit} if that exit code means that nothing was sent`
    : verify;
}

/** Which of what may be worded differently was. */
function describeDrift(drift: readonly string[]): string {
  const fields = drift.filter((field) => field !== commandField);
  const command = drift.includes(commandField) ? ', by another command line' : '';
  return fields.length === 0 ? command : `${command}, with another ${fields.join(', ')}`;
}

function contentOf(given: readonly string[] | undefined, ids: object): Ids {
  const content = idsOf('once', given, 'content');
  for (const name of Object.keys(content)) {
    if (Object.hasOwn(ids, name))
      throw usageError(
        'once',
        `${JSON.stringify(name)} is in --id and in --content`,
        'Leave one of them out.',
      );
    // A dot would lead into a field; `effect` stands for the effect where there are no ids.
    if (name.includes('.') || name === 'effect')
      throw usageError('once', `--content cannot be named ${name}`, 'Use another name, without dots.');
  }
  return content;
}

function exitsOf(text: string | undefined): readonly number[] {
  const codes = (text ?? '').split(',').map((each) => each.trim());
  return codes.filter(Boolean).map((code) => {
    if (/^\d{1,3}$/.test(code) && Number(code) <= exitCodes.to) return Number(code);
    throw usageError('once', `${JSON.stringify(code)} is not an exit code`, 'Write a number from 0 to 255.');
  });
}
