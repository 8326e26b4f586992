// `semel run`: guards a job. Options and messages only; the work is in src/jobs.

import {
  commandVerifier,
  commandWork,
  findAtLeast,
  findRun,
  type Holder,
  isGuardGone,
  type JobSlot,
  nameRun,
  type Report,
  runEnv,
  runJob,
  shownOwner,
  slotOf,
  units,
} from '../../jobs/index.ts';
import { exitCodes, flagReader, maxTimerMs } from '../args/flag-values.ts';
import { idsOf } from '../args/ids.ts';
import { zoneOf } from '../args/zone.ts';
import { ledgerNote, mustBeOperator } from '../caller.ts';
import { command, type ValuesOf } from '../command.ts';
import { choice, text, texts, toggle } from '../flags.ts';
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
import { relative } from '../render/print.ts';
import { sinceOf } from '../render/state.ts';
import { usageError } from '../usage.ts';

const flags = {
  per: {
    ...choice(units, 'run once per period (default: none, which only prevents overlap)'),
    insteadOfDuration:
      'A run has a slot of the calendar, such as --per day. To leave a minimum time between two starts, use --at-least; to do an effect once per duration, use `semel once --per`.',
  },
  cron: text(
    '<expression>',
    'the schedule, as in the crontab: the slot is its latest scheduled time; @reboot: this boot',
  ),
  at: text('<instant>', 'the scheduled instant, if your scheduler provides it; in --tz unless it has a zone'),
  tz: text('<zone>', 'time zone of slots: Europe/Paris (default: TZ, otherwise the system time zone)'),
  id: texts('<name=value>', 'separate runs, for example per customer; repeatable'),
  again: text('<why>', 'run it once more on purpose; the reason is kept in the history'),
  'if-busy': choice(['skip', 'wait', 'fail'], 'what to do while the job is running (default: skip)'),
  wait: text('<duration>', 'how long to wait; implies --if-busy wait'),
  verify: text('<command>', 'runs after a failure: exit 0 means done, 1 not done, anything else unknown'),
  'verify-after': text('<duration>', 'trust "not done" only after this delay (default: 60s)'),
  'after-failure': choice(['rerun', 'hold'], 'run again (default), or hold in doubt'),
  retries: text('<n>', 'maximum number of retries within this run (default: 0)'),
  backoff: text('<duration>', 'delay before the first retry; doubles each time (default: 1m)'),
  'at-least': text(
    '<duration>',
    'hold the lock this long from the start, even if the run is over sooner (default: 0)',
  ),
  ...guardFlags,
  window: text('<duration>', 'how long to remember a run after its slot ends (default: 30d)'),
  'skip-code': text('<code>', 'exit code when the run is skipped (default: 0)'),
  quiet: toggle('do not report skips', 'q'),
} as const;

export default command({
  name: 'run',
  takes: '<job> [options] -- <command> [args…]',
  about: `Two runs of a job never overlap; with --per, --cron or --at each slot is done once. A slot that is done or running is
skipped. One that failed or crashed runs again, and with it everything that it did before: put what must not repeat under
\`semel once\`, or let a person decide first with --after-failure hold. The command keeps its streams and exit code. It gets SEMEL_RUN, SEMEL_SLOT,
SEMEL_DATE, SEMEL_TZ, SEMEL_ATTEMPT, SEMEL_FENCE, SEMEL_KEY, SEMEL_KEY_UUID, SEMEL_ID, SEMEL_STORE and SEMEL_CONTEXT.
stdout belongs to the command: --json prints one line about the run on stderr.`,
  flags,
  examples: [
    'semel run blog --per day -- ./agent.sh',
    "semel run digest --cron '0 7 * * 1-5' --tz Europe/Paris -- python digest.py",
    'semel run invoice --per month --id customer=42 --timeout 10m --retries 2 -- ./invoice.sh 42',
  ],
  async run(input) {
    const { values } = input;
    if (values.again !== undefined) mustBeOperator('run', 'Repeating it on purpose (--again)');
    const { name: job, words } = guardedLine('run', 'job', input, '-- ./job.sh');
    if (values.per !== undefined && values.cron !== undefined)
      throw usageError(
        'run',
        '--per and --cron cannot be combined',
        'Both define the slot: leave one of them out.',
      );
    const given = flagReader('run', values);
    const zone = zoneOf(values.tz);
    const at = given.instant('at', zone);
    const pipeName = newPipeName();
    const slot = slotOf({ per: values.per, cron: values.cron, at, zone }, Date.now(), pipeName);
    if (slot.unit === 'none' && values['after-failure'] === 'hold')
      throw usageError(
        'run',
        '--after-failure hold needs a slot: otherwise every start is a new run',
        'Add --per day, or --cron with the schedule.',
      );
    const terms = {
      ...guardTerms(given),
      retries: given.whole('retries', 0, { to: 999 }),
      backoffMs: given.duration('backoff', 60_000),
      windowMs: given.duration('window', 30 * 86_400_000),
      atLeastMs: given.duration('at-least', 0, { to: maxTimerMs }),
    };
    const skipCode = given.whole('skip-code', 0, exitCodes);
    const ids = idsOf('run', values.id);
    const label = labelOf(`${job} ${slot.name}`, ids);
    const hint = values.quiet || values.json ? undefined : hintFor(job, slot, values.per);
    return runGuarded(
      values,
      pipeName,
      {},
      (guard) => {
        const run = { job, ids, slot, again: values.again };
        const ifBusy = values['if-busy'] ?? (values.wait === undefined ? 'skip' : 'wait');
        const options = { ...guard, ...run, ...terms, command: words, verify: values.verify, ifBusy };
        const env = runEnv(guard.semel, nameRun(run), slot, ids, terms.windowMs);
        const verify = commandVerifier(options, env);
        const afterFailure = values['after-failure'] ?? 'rerun';
        return runJob({ ...options, verify, afterFailure, label, hint }, commandWork(options, env));
      },
      (report, guard) => tell(report, guard, { job, label, slot, command: words, skipCode, values }),
    );
  },
});

interface Run {
  readonly job: string;
  readonly label: string;
  readonly slot: JobSlot;
  readonly command: readonly string[];
  readonly skipCode: number;
  readonly values: ValuesOf<typeof flags> & { readonly json: boolean | undefined };
}

/** One line at most, and the exit code. */
async function tell(report: Report, { semel, facts }: Guard, run: Run): Promise<number> {
  const { job, label, slot, command, skipCode, values } = run;
  const ledger = facts.location;
  const { say, finish, refuse } = createReporter(values.json, { job, slot: slot.name }, ledger);
  const skip = (sentence: string, more: object) => {
    if (!values.quiet) say(`${sentence}; nothing was run${ledgerNote(ledger)}`);
    return finish('skipped', skipCode, more);
  };
  if (report.leftBehind && !values.quiet)
    say(`processes that ${label} started are still running: ${job} does not start again until they end`);
  switch (report.kind) {
    case 'done': {
      const { record, value } = report;
      const more = { reason: 'done', record: record.id, doneAt: record.settledAt };
      if (report.ending !== undefined) {
        say(`${label} exited with ${report.ending.exit}; the verifier found that it is done`);
        return finish('succeeded', 0, { ...more, reason: 'verified' });
      }
      if (values.quiet || values.json) return skip('', more);
      // Only now: a later start replays it, and its record says by whom it was done.
      const isVerified = report.drift === undefined && typeof value === 'object' && value.verified === true;
      const how = isVerified ? 'was found to be done by the verifier' : await describeDone(semel, record);
      const again = values.again === undefined ? '' : ', with the same --again reason';
      const early =
        slot.near === 'end' ? `; ${slot.name} is about to end: ${ambiguous('an early', 'next')}` : '';
      return skip(`${label} ${how}${again}${early}`, more);
    }
    case 'busy': {
      const run = await findRun(semel, job, report.holder);
      const atLeast = run === undefined ? await findAtLeast(semel, report.holder) : undefined;
      const { id, leaseLeftMs } = report.holder.record;
      const since = run === undefined ? undefined : sinceOf(run);
      const until = new Date(Date.now() + (leaseLeftMs ?? 0));
      const sentence =
        atLeast === undefined
          ? describeHolder(report.holder, job, since)
          : describeKept(report.holder, job, atLeast, until);
      const more =
        atLeast === undefined
          ? { reason: 'running', record: id, since }
          : { reason: 'at-least', record: id, until };
      if (values['if-busy'] !== 'fail' && values['if-busy'] !== 'wait' && values.wait === undefined)
        return skip(sentence, more);
      say(`${sentence}; ${label} was not run${ledgerNote(ledger)}`);
      return finish('busy', 75, more);
    }
    case 'refused':
      return refuse(report.error, {
        ...{ label, namespace: semel.namespace, facts, ending: report.ending },
        hasVerify: values.verify !== undefined,
        flags: 'next time, let --verify <command> decide',
      });
    case 'ran': {
      const { ending, attempt } = report;
      const exit = ending.timedOut ? 124 : ending.exit;
      if (ending.lostOutput && exit === 0)
        say(`${label} is done, but some of its output could not be passed on`);
      if (ending.neverStarted) say(describeNoStart(command, ending));
      else if (ending.timedOut)
        say(`${label} was ended by its timeout of ${values.timeout}, attempt ${attempt}`);
      else if (exit !== 0 && values.retries !== undefined)
        say(`${label} failed with exit ${exit}, attempt ${attempt}`);
      return finish(exit === 0 ? 'succeeded' : 'failed', exit, {
        attempt,
        tookMs: Math.round(ending.tookMs),
      });
    }
  }
}

function hintFor(job: string, { name, near, unit }: JobSlot, per: string | undefined): string | undefined {
  if (near === 'begin') return `${name} has just begun: ${ambiguous('a late', 'previous')}`;
  return unit === 'none' && per === undefined
    ? `${job} has no period, so only overlap is prevented: --per day (or --cron) runs it once per slot, --per none hides this`
    : undefined;
}

function ambiguous(kind: string, side: string): string {
  return `${kind} start of the ${side} slot would look the same; --cron or --at tells them apart`;
}

function describeKept({ record }: Holder, job: string, atLeast: string, until: Date): string {
  const who = shownOwner(record.owner);
  return `${job} was run by ${who}; its lock is held until ${until.toISOString()} (--at-least ${atLeast})`;
}

function describeHolder({ record, isAlive }: Holder, job: string, since: Date | undefined): string {
  const who = shownOwner(record.owner);
  if (since === undefined) return `processes of an earlier run of ${job} by ${who} are still running`;
  const sentence = `${job} has been running since ${since.toISOString()} (${relative(since)}) by ${who}`;
  const isGuardless = isAlive && (record.lapsed || isGuardGone(record.owner));
  return isGuardless ? `${sentence}, which is gone; what it started is still running` : sentence;
}
