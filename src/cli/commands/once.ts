// `semel once`: guards one effect. Its words only; what it does is in src/jobs.

import type { Per } from '../../core/contract/period.ts';
import {
  type ChildEnding,
  contractName,
  type EffectReport,
  insideOf,
  isReserved,
  ownerOf,
  periodNamed,
  resultBytes,
  runEffect,
  shownOwner,
} from '../../jobs/index.ts';
import type { Semel } from '../../semel/index.ts';
import type { StoreFacts } from '../../store/store.ts';
import { exitCodes, flagReader } from '../args/flag-values.ts';
import { identityOf } from '../args/ids.ts';
import { zoneOf } from '../args/zone.ts';
import { ledgerNote, mustBeOperator, shownError } from '../caller.ts';
import { command, type ValuesOf } from '../command.ts';
import { exitCodeOf } from '../exit-code.ts';
import { choice, text, texts, toggle } from '../flags.ts';
import {
  answering,
  couldNotStart,
  doneWords,
  guardedLine,
  guardFlags,
  guardIn,
  guardTerms,
  labelOf,
  leave,
  newMark,
  tellRefusal,
} from '../guarded.ts';
import { ledgerFor } from '../ledger.ts';
import { writeResult } from '../render/output.ts';
import { complain } from '../render/print.ts';
import { usageError } from '../usage.ts';

const flags = {
  id: texts('<name=value>', 'what the effect is about; repeatable'),
  'id-json': text('<file|->', 'the same as a JSON object'),
  key: text('<key>', 'your own key, instead of one made of the ids'),
  per: choice(
    ['run', 'minute', 'hour', 'day', 'week', 'month', 'ever'],
    'once per what (default: ever with --id, else the run)',
  ),
  tz: text('<zone>', 'the time zone of --per (default: that of the run, else TZ)'),
  window: text('<duration>', 'how long, after its period, the result is kept (default: 30d)'),
  again: text('<why>', 'do it once more on purpose; kept in the history'),
  'if-busy': choice(['wait', 'skip', 'fail'], 'what to do while it is being done (default: wait)'),
  wait: text('<duration>', 'how long to wait (default: as long as it takes)'),
  'not-landed-exit': text('<codes>', 'exit codes that mean "it did not land": 6,7'),
  'if-unknown': choice(['hold', 'rerun'], 'rerun: the command is safe to repeat (default: hold)'),
  verify: text('<command>', 'decides a doubt: exit 0 it landed (its stdout is the result), 1 it did not'),
  'verify-after': text('<duration>', 'believe "it did not" only so long after the end (default: 60s)'),
  ...guardFlags,
  'skip-code': text('<code>', 'the exit code where nothing was run (default: 0)'),
  quiet: toggle('say nothing about what was done already', 'q'),
} as const;

export default command({
  name: 'once',
  takes: '<name> [--id k=v]… [options] -- <command> [args…]',
  about: `The first success is remembered: later calls print the same stdout, run nothing, and exit with 0. A command that failed
or was killed may have done it: that is in doubt (exit 76) until a verifier or a person says. With --id: once ever;
without, inside \`semel run\`: once per slot. The command gets SEMEL_KEY and SEMEL_KEY_UUID to pass on to the provider: a\nshell must not put them in before semel does, so write sh -c '…' with single quotes. stdout is the command's: --json\nprints one line about the effect on stderr.`,
  flags,
  examples: [
    'semel once mail --id lead=42 --id template=welcome -- ./send.sh 42 welcome',
    'semel once publish --verify ./is-it-live.sh -- ./publish.sh post.md',
    `semel once charge --id order=7 -- sh -c 'curl -fsS -H "Idempotency-Key: $SEMEL_KEY_UUID" https://…'`,
  ],
  async run(input) {
    const { values } = input;
    if (values.again !== undefined) mustBeOperator('once', 'Doing it once more (--again)');
    const { name, words } = guardedLine('once', 'effect', input, '--id … -- ./send.sh');
    if (isReserved(contractName(undefined, name)))
      throw usageError(
        'once',
        'names that start with run., turn., step. or pick. belong to jobs',
        'Use another name.',
      );
    const inside = insideOf();
    const ids = identityOf('once', values);
    const hasIdentity = Object.keys(ids).length > 0 || values.key !== undefined;
    const unit = values.per ?? (hasIdentity ? 'ever' : 'run');
    if (unit === 'run' && inside === undefined)
      throw usageError(
        'once',
        hasIdentity ? '--per run needs a run' : 'nothing says what the effect is about',
        'Give it by --id name=value, or call it inside `semel run`.',
      );
    if (!hasIdentity && unit === 'ever')
      throw usageError('once', 'nothing says what the effect is about', 'Give it by --id name=value.');
    const given = flagReader('once', values);
    const terms = {
      ...guardTerms(given),
      windowMs: given.duration('window', undefined),
      notLandedExits: exitsOf(values['not-landed-exit']),
    };
    const skipCode = given.whole('skip-code', 0, exitCodes);
    const zone = zoneOf(values.tz, inside?.zone);
    const per: Per = unit === 'run' || unit === 'ever' ? unit : periodNamed(unit, zone);
    const mark = newMark();
    await using semel = ledgerFor(values, {
      make: true,
      owner: ownerOf(mark),
      limits: { resultBytes },
    });
    const guard = await guardIn(semel, values, mark);
    const report = await runEffect({
      ...guard,
      contract: contractName(undefined, name),
      args: ids,
      per,
      callOptions: {
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
    });
    const label = labelOf(name, ids);
    const code = await tell(report, {
      semel,
      name,
      label,
      facts: guard.facts,
      command: words,
      skipCode,
      values,
    });
    return report.kind === 'left behind' ? leave(semel, code) : code;
  },
});

interface Told {
  readonly semel: Semel;
  readonly name: string;
  readonly label: string;
  readonly facts: StoreFacts;
  readonly command: readonly string[];
  readonly skipCode: number;
  readonly values: ValuesOf<typeof flags> & { readonly json: boolean | undefined };
}

/** The stored output on stdout, what is to be said on stderr, and the exit code. */
async function tell(report: EffectReport, told: Told): Promise<number> {
  const { semel, name, label, facts, command, skipCode, values } = told;
  const ledger = facts.location;
  const answer = answering(values.json, { name }, ledger);
  const say = (sentence: string) => {
    if (!values.json) complain(sentence);
  };
  switch (report.kind) {
    case 'ran': {
      const { ending, attempt } = report;
      if (ending.neverStarted) say(couldNotStart(command, ending));
      else if (ending.exit !== 0) say(`${label} did not land (exit ${ending.exit}): the next call runs it`);
      else if (ending.stdout === undefined)
        say(
          `${label} printed ${ending.stdoutBytes} bytes, which is more than is kept: later calls print nothing`,
        );
      if (ending.exit === 0 && ending.lostOutput) {
        say(`${label} is done, but what it printed could not be passed on: call it again to have it printed`);
        return answer('succeeded', 74, { attempt });
      }
      return answer(ending.exit === 0 ? 'succeeded' : 'not landed', ending.exit, { attempt });
    }
    case 'done': {
      const { record, ending } = report;
      await writeResult(report.value);
      const doneAt = record.settledAt;
      if (ending !== undefined) {
        say(`${label} ended with exit ${ending.exit}; the verifier found that it landed`);
        return answer('landed', 0, { record: record.id, doneAt });
      }
      const again = values.again === undefined ? '' : ', with the same reason to do it again';
      const other = report.isOther === true ? ', by another command line' : '';
      if (!values.quiet)
        say(
          `${label} ${await doneWords(semel, record)}${other}${again}; nothing was run${ledgerNote(ledger)}`,
        );
      return answer('replayed', skipCode, { record: record.id, doneAt });
    }
    case 'left behind': {
      say(`${label} failed with exit ${report.ending.exit}, and what it started still runs: it may land`);
      say('the next call finds it busy, and in doubt once that has ended; semel doubt lists it then');
      return answer('left behind', 76, {});
    }
    case 'busy': {
      const { record } = report.holder;
      const isSkip = values['if-busy'] === 'skip';
      const since = `since ${record.updatedAt.toISOString()} by ${shownOwner(record.owner)}`;
      if (!(isSkip && values.quiet))
        say(`${label} is being done ${since}; nothing was run${ledgerNote(ledger)}`);
      return answer('busy', isSkip ? skipCode : 75, { record: record.id });
    }
    case 'refused': {
      const { error, ending } = report;
      tellRefusal(error, values.json, {
        ...{ label, namespace: semel.namespace, facts, ending },
        hasVerify: values.verify !== undefined,
        flags: flagsFor(ending),
      });
      return answer(error.code, exitCodeOf(error), { error: shownError(error) });
    }
  }
}

/** What would have decided it. */
function flagsFor(ending: ChildEnding | undefined): string {
  const verify = '--verify <command> would decide it';
  const isOwnCode = ending !== undefined && ending.signal === undefined && ending.exit > 0;
  return isOwnCode
    ? `${verify}; --not-landed-exit ${ending.exit} would say that with this code nothing was sent`
    : verify;
}

function exitsOf(text: string | undefined): readonly number[] {
  const codes = (text ?? '').split(',').map((each) => each.trim());
  return codes.filter(Boolean).map((code) => {
    if (/^\d{1,3}$/.test(code) && Number(code) <= exitCodes.to) return Number(code);
    throw usageError('once', `${JSON.stringify(code)} is no exit code`, 'It is a number from 0 to 255.');
  });
}
