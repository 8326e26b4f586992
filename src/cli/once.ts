// `semel once`: guards one effect. Its words only; what it does is in src/jobs.

import { randomBytes } from 'node:crypto';
import type { Per } from '../core/period.ts';
import {
  contractName,
  type EffectReport,
  insideOf,
  isReserved,
  ownerOf,
  periodNamed,
  resultBytes,
  runEffect,
  shortestLeaseMs,
  shownOwner,
} from '../jobs/index.ts';
import { command } from './command.ts';
import { exitCodeOf } from './exit-code.ts';
import { exitCodes, flagReader, longestTimerMs } from './flag-values.ts';
import { guardedLine, sayIfNeverStarted } from './guarded.ts';
import { identityOf } from './ids.ts';
import { chosenNamespace, ledgerFor } from './ledger.ts';
import { writeResult } from './output.ts';
import { complain, printAside, relative } from './print.ts';
import { usageError } from './usage.ts';
import { zoneOf } from './zone.ts';

export default command({
  name: 'once',
  takes: '<name> [--id k=v]… [options] -- <command> [args…]',
  about: `The first success is remembered: later calls print the same stdout, run nothing, and exit with 0. A command that failed
or was killed may have done it: that is in doubt (exit 76) until a verifier or a person says. With --id: once ever;
without, inside \`semel run\`: once per slot. The command gets SEMEL_KEY and SEMEL_KEY_UUID to pass on to the provider.`,
  flags: {
    id: {
      type: 'string',
      multiple: true,
      value: '<name=value>',
      help: 'what the effect is about; repeatable',
    },
    'id-json': { type: 'string', value: '<file|->', help: 'the same as a JSON object' },
    key: { type: 'string', value: '<key>', help: 'your own key, instead of one made of the ids' },
    per: {
      type: 'string',
      choices: ['run', 'minute', 'hour', 'day', 'week', 'month', 'ever'],
      help: 'once per what (default: ever with --id, else the run)',
    },
    tz: {
      type: 'string',
      value: '<zone>',
      help: 'the time zone of --per (default: that of the run, else TZ)',
    },
    window: {
      type: 'string',
      value: '<duration>',
      help: 'how long, after its period, the result is kept (default: 30d)',
    },
    again: { type: 'string', value: '<why>', help: 'do it once more on purpose; kept in the history' },
    'if-busy': {
      type: 'string',
      choices: ['wait', 'skip', 'fail'],
      help: 'what to do while it is being done (default: wait)',
    },
    wait: {
      type: 'string',
      value: '<duration>',
      help: 'wait at most so long (default: as long as it takes)',
    },
    'not-landed-exit': {
      type: 'string',
      value: '<codes>',
      help: 'exit codes that mean "it did not land": 6,7',
    },
    'if-unknown': {
      type: 'string',
      choices: ['hold', 'rerun'],
      help: 'rerun: the command is safe to repeat (default: hold)',
    },
    verify: {
      type: 'string',
      value: '<command>',
      help: 'decides a doubt: exit 0 it landed (its stdout is the result), 1 it did not',
    },
    'verify-after': {
      type: 'string',
      value: '<duration>',
      help: 'believe "it did not" only so long after the end (default: 60s)',
    },
    timeout: {
      type: 'string',
      value: '<duration>',
      help: 'end the command with TERM after this time (default: none)',
    },
    grace: { type: 'string', value: '<duration>', help: 'from TERM to KILL (default: 10s)' },
    lease: {
      type: 'string',
      value: '<duration>',
      help: 'how long a dead machine blocks the others (default: 15m)',
    },
    'skip-code': {
      type: 'string',
      value: '<code>',
      help: 'the exit code where nothing was run (default: 0)',
    },
    quiet: { type: 'boolean', short: 'q', help: 'say nothing about what was done already' },
  },
  examples: [
    'semel once mail --id lead=42 --id template=welcome -- ./send.sh 42 welcome',
    'semel once publish --verify ./is-it-live.sh -- ./publish.sh post.md',
    'semel once charge --id order=7 -- curl -fsS -H "Idempotency-Key: $SEMEL_KEY_UUID" https://…',
  ],
  async run(input) {
    const { values } = input;
    const { name, words } = guardedLine('once', 'effect', input, '--id … -- ./send.sh');
    if (isReserved(name))
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
      waitMs: given.duration('wait', Number.POSITIVE_INFINITY),
      verifyAfterMs: given.duration('verify-after', 60_000),
      leaseMs: given.duration('lease', 900_000, { from: shortestLeaseMs }),
      windowMs: given.duration('window', undefined),
      timeoutMs: given.duration('timeout', Number.POSITIVE_INFINITY, { to: longestTimerMs }),
      graceMs: given.duration('grace', 10_000, { to: longestTimerMs }),
      notLandedExits: exitsOf(values['not-landed-exit']),
    };
    const skipCode = given.whole('skip-code', 0, exitCodes);
    const zone = zoneOf(values.tz, inside?.zone);
    const per: Per = unit === 'run' || unit === 'ever' ? unit : periodNamed(unit, zone);
    const mark = randomBytes(10).toString('hex');
    await using semel = ledgerFor(values, {
      make: true,
      owner: ownerOf(mark),
      limits: { resultBytes },
    });
    const facts = await semel.open();
    const report = await runEffect({
      semel,
      facts,
      mark,
      isNamespaceChosen: chosenNamespace(values) !== undefined,
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
      say: complain,
    });
    return await tell(name, report, facts.location, { ...values, skipCode });
  },
});

interface Wishes {
  readonly json: boolean | undefined;
  readonly quiet: boolean | undefined;
  readonly 'if-busy': string | undefined;
  readonly skipCode: number;
}

/** The stored output on stdout, one line on stderr, and the exit code. */
async function tell(name: string, report: EffectReport, ledger: string, wishes: Wishes): Promise<number> {
  const answer = (status: string, exit: number, more: object) => {
    if (wishes.json) printAside(JSON.stringify({ name, status, exit, ledger, ...more }));
    return exit;
  };
  switch (report.kind) {
    case 'ran': {
      const { ending, attempt } = report;
      if (!wishes.json) {
        sayIfNeverStarted(ending);
        if (ending.exit !== 0 && !ending.neverStarted)
          complain(`${name} did not land: the next call runs it again`);
      }
      return answer(ending.exit === 0 ? 'succeeded' : 'not landed', ending.exit, { attempt });
    }
    case 'done': {
      const { record } = report;
      await writeResult(report.value);
      const at = record.settledAt ?? new Date(0);
      if (!wishes.quiet && !wishes.json)
        complain(
          `${name} was already done at ${at.toISOString()} (${relative(at)}) by ${shownOwner(record.owner)}; nothing was run (ledger ${ledger})`,
        );
      return answer('replayed', wishes.skipCode, { record: record.id, doneAt: at });
    }
    case 'busy': {
      const { record } = report.holder;
      const isSkip = wishes['if-busy'] === 'skip';
      if (!wishes.json && !(isSkip && wishes.quiet))
        complain(
          `${name} is being done since ${record.updatedAt.toISOString()} by ${shownOwner(record.owner)}; nothing was run (ledger ${ledger})`,
        );
      return answer('busy', isSkip ? wishes.skipCode : 75, { record: record.id });
    }
    case 'refused': {
      if (!wishes.json) complain(report.error.message);
      return answer(report.error.code, exitCodeOf(report.error), { error: report.error });
    }
  }
}

function exitsOf(text: string | undefined): readonly number[] {
  const codes = (text ?? '').split(',').map((each) => each.trim());
  return codes.filter(Boolean).map((code) => {
    if (/^\d{1,3}$/.test(code) && Number(code) <= exitCodes.to) return Number(code);
    throw usageError('once', `${JSON.stringify(code)} is no exit code`, 'It is a number from 0 to 255.');
  });
}
