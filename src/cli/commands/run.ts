// `semel run`: guards a job. Its words only; what it does is in src/jobs.

import {
  type Holder,
  type JobReport,
  type JobSlot,
  ownerOf,
  runJob,
  shownOwner,
  slotOf,
  units,
} from '../../jobs/index.ts';
import type { Semel } from '../../semel/index.ts';
import type { StoreFacts } from '../../store/store.ts';
import { exitCodes, flagReader } from '../args/flag-values.ts';
import { idsOf } from '../args/ids.ts';
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
import { complain, relative } from '../render/print.ts';
import { usageError } from '../usage.ts';

const flags = {
  per: choice(units, 'do each slot once (default: none, which only prevents overlap)'),
  cron: text('<expression>', 'the schedule, as in the crontab: the slot is its latest instant'),
  at: text('<instant>', 'the scheduled instant, where the scheduler tells it; of --tz unless it has a zone'),
  tz: text('<zone>', 'the time zone of slots: Europe/Paris (default: TZ, else that of the system)'),
  id: texts('<name=value>', 'one run per customer, say; repeatable'),
  again: text('<why>', 'run it once more on purpose; kept in the history'),
  'if-busy': choice(['skip', 'wait', 'fail'], 'what to do while it runs (default: skip)'),
  wait: text('<duration>', 'how long to wait; implies --if-busy wait'),
  verify: text('<command>', 'asked after a failure: exit 0 it is done, 1 it is not, else unknown'),
  'verify-after': text('<duration>', 'believe "it is not" only so long after the end (default: 60s)'),
  'after-failure': choice(['rerun', 'hold'], 'run again (default), or hold in doubt'),
  retries: text('<n>', 'try a failure again so often, in its turn (default: 0)'),
  backoff: text('<duration>', 'before the first retry; doubles (default: 1m)'),
  ...guardFlags,
  window: text('<duration>', 'how long, after its slot, a run is remembered (default: 30d)'),
  'skip-code': text('<code>', 'the exit code of a skip (default: 0)'),
  quiet: toggle('say nothing about skips', 'q'),
} as const;

export default command({
  name: 'run',
  takes: '<job> [options] -- <command> [args…]',
  about: `Two runs of a job never overlap; with --per, --cron or --at each slot is done once. What was done or is being done is
skipped; what failed or died is run again. The command's streams and exit code are its own. It gets SEMEL_RUN, SEMEL_SLOT, SEMEL_DATE,
SEMEL_TZ, SEMEL_ATTEMPT, SEMEL_FENCE, SEMEL_KEY, SEMEL_KEY_UUID, SEMEL_ID, SEMEL_STORE and SEMEL_CONTEXT. stdout is
the command's: --json prints one line about the run on stderr.`,
  flags,
  examples: [
    'semel run blog --per day -- ./agent.sh',
    "semel run digest --cron '0 7 * * 1-5' --tz Europe/Paris -- python digest.py",
    'semel run invoice --per month --id customer=42 --timeout 10m --retries 2 -- ./invoice.sh 42',
  ],
  async run(input) {
    const { values } = input;
    if (values.again !== undefined) mustBeOperator('run', 'Doing it once more (--again)');
    const { name: job, words } = guardedLine('run', 'job', input, '-- ./job.sh');
    if (values.per !== undefined && values.cron !== undefined)
      throw usageError('run', '--per and --cron both say what a slot is', 'Leave one of them out.');
    const given = flagReader('run', values);
    const zone = zoneOf(values.tz);
    const at = given.instant('at', zone);
    const mark = newMark();
    const slot = slotOf({ per: values.per, cron: values.cron, at, zone }, Date.now(), mark);
    if (slot.unit === 'none' && values['after-failure'] === 'hold')
      throw usageError(
        'run',
        '--after-failure hold needs a slot: without one every start is a new run',
        'Add --per day, or --cron with the schedule.',
      );
    const terms = {
      ...guardTerms(given),
      retries: given.whole('retries', 0, { to: 999 }),
      backoffMs: given.duration('backoff', 60_000),
      windowMs: given.duration('window', 30 * 86_400_000),
    };
    const skipCode = given.whole('skip-code', 0, exitCodes);
    const ids = idsOf('run', values.id);
    const label = labelOf(`${job} ${slot.name}`, ids);
    await using semel = ledgerFor(values, { make: true, owner: ownerOf(mark) });
    const guard = await guardIn(semel, values, mark);
    const report = await runJob({
      ...guard,
      job,
      label,
      ids,
      slot,
      command: words,
      again: values.again,
      ifBusy: values['if-busy'] ?? (values.wait === undefined ? 'skip' : 'wait'),
      verify: values.verify,
      afterFailure: values['after-failure'] ?? 'rerun',
      ...terms,
      hint: values.quiet || values.json ? undefined : hintFor(job, slot, values.per),
    });
    const { facts } = guard;
    const code = await tell(report, { semel, job, label, slot, facts, command: words, skipCode, values });
    return report.leftBehind ? leave(semel, code) : code;
  },
});

interface Told {
  readonly semel: Semel;
  readonly job: string;
  readonly label: string;
  readonly slot: JobSlot;
  readonly command: readonly string[];
  readonly facts: StoreFacts;
  readonly skipCode: number;
  readonly values: ValuesOf<typeof flags> & { readonly json: boolean | undefined };
}

/** One line at most, and the exit code. */
async function tell(report: JobReport, told: Told): Promise<number> {
  const { semel, job, label, slot, facts, command, skipCode, values } = told;
  const ledger = facts.location;
  const answer = answering(values.json, { job, slot: slot.name }, ledger);
  const skip = (sentence: string, more: object) => {
    if (!values.quiet && !values.json) complain(`${sentence}; nothing was run${ledgerNote(ledger)}`);
    return answer('skipped', skipCode, more);
  };
  if (report.leftBehind && !values.json && !values.quiet)
    complain(`what ${label} started still runs: until it has ended, ${job} is not started again`);
  switch (report.kind) {
    case 'skipped': {
      const { record } = report;
      const more = { record: record.id, doneAt: record.settledAt };
      if (report.ending !== undefined) {
        if (!values.json)
          complain(`${label} ended with exit ${report.ending.exit}; the verifier found that it is done`);
        return answer('succeeded', 0, more);
      }
      if (values.quiet || values.json) return skip('', more);
      const how = report.isVerified ? 'was found to be done by the verifier' : await doneWords(semel, record);
      const again = values.again === undefined ? '' : ', with the same reason to do it again';
      const early = slot.near === 'end' ? `; ${slot.name} ends now: ${ambiguous('an early', 'after')}` : '';
      return skip(`${label} ${how}${again}${early}`, more);
    }
    case 'busy': {
      const sentence = `${job} has been running ${busyWho(report.holder)}`;
      if (values['if-busy'] === 'fail' || values.wait !== undefined || values['if-busy'] === 'wait') {
        if (!values.json) complain(`${sentence}; ${label} was not run${ledgerNote(ledger)}`);
        return answer('busy', 75, { record: report.holder.record.id });
      }
      return skip(sentence, { record: report.holder.record.id });
    }
    case 'refused': {
      tellRefusal(report.error, values.json, {
        ...{ label, namespace: semel.namespace, facts, ending: report.ending },
        hasVerify: values.verify !== undefined,
        flags: '--verify <command> would decide it',
      });
      return answer(report.error.code, exitCodeOf(report.error), { error: shownError(report.error) });
    }
    case 'ran': {
      const { ending, attempt } = report;
      const exit = ending.timedOut ? 124 : ending.exit;
      if (ending.lostOutput && exit === 0 && !values.json)
        complain(`${label} is done, but not all that it printed could be passed on`);
      if (ending.neverStarted && !values.json) complain(couldNotStart(command, ending));
      else if (!values.json && (ending.timedOut || (exit !== 0 && values.retries !== undefined)))
        complain(
          `${label} ${ending.timedOut ? `was ended by its timeout of ${values.timeout}` : `failed with exit ${exit}`}, attempt ${attempt}`,
        );
      return answer(exit === 0 ? 'succeeded' : 'failed', exit, {
        attempt,
        tookMs: Math.round(ending.tookMs),
      });
    }
  }
}

function hintFor(job: string, { name, near, unit }: JobSlot, per: string | undefined): string | undefined {
  if (near === 'begin') return `${name} has just begun: ${ambiguous('a late', 'before')}`;
  return unit === 'none' && per === undefined
    ? `${job} has no period, so only overlap is prevented: --per day (or --cron) does each slot once, --per none hides this`
    : undefined;
}

function ambiguous(kind: string, side: string): string {
  return `${kind} start of the slot ${side} would look the same; --cron or --at tells them apart`;
}

function busyWho({ record, isSeen }: Holder): string {
  const who = `since ${record.updatedAt.toISOString()} (${relative(record.updatedAt)}) by ${shownOwner(record.owner)}`;
  return record.lapsed && isSeen ? `${who}; its guard is gone, its command still runs` : who;
}
