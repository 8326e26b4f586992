// The cron job that is safe to retry: a lock file prevents two runs at once, and a marker says that tonight's is done.
// The incident: the job is killed after its mail, before it has written the marker. The lock stays, so the retry and all nights
// after it do nothing. Remove the lock by hand, and tonight's mail is sent twice.

import { closeSync, existsSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createSemel, day } from 'semel';
import { file, killed, land, look, options, say, start, tell } from './story.ts';

/** The job is killed, retried, and started in the next night. */
const night = start < 3 ? '2026-06-19' : '2026-06-20';

async function byHand(): Promise<void> {
  // 1. Take the lock, or leave.
  try {
    closeSync(openSync(file('lock'), 'wx'));
  } catch {
    return say('another run has the lock');
  }
  // 2. Done tonight? Leave.
  if (!existsSync(file(`done-${night}`))) {
    // 3. Act.
    land(`digest of ${night}`);
    killed();
    // 4. Mark the night as done.
    writeFileSync(file(`done-${night}`), '');
  }
  // 5. Release the lock.
  rmSync(file('lock'));
}

async function withSemel(isVerified = false): Promise<void> {
  await using semel = createSemel(options);
  // 1., 2., 4. and 5. One run at a time, each night once. The lock of a dead process is released.
  const nightly = semel.job('digest', { per: day('UTC') }, async (job) => {
    const digest = `digest of ${job.date}`;
    const verify = () => look(digest);
    // 3. Act. Tonight's mail has a record of its own: a retry of the job does not repeat it.
    await job.once('mail', { date: job.date }, isVerified ? { verify } : {}, () => {
      land(digest);
      killed();
    });
  });
  const outcome = await nightly.try({ at: new Date(`${night}T03:00:00Z`) });
  say(outcome.status === 'failed' ? outcome.error.code : outcome.status);
}

await tell(
  {
    'by hand': byHand,
    'with semel': withSemel,
    'with semel and verify': () => withSemel(true),
  },
  { starts: 3 },
);
// prints: by hand
// prints:   start 2: another run has the lock
// prints:   start 3: another run has the lock
// prints:   landed: digest of 2026-06-19
// prints: with semel
// prints:   start 2: IN_DOUBT
// prints:   start 3: executed
// prints:   landed: digest of 2026-06-19, digest of 2026-06-20
// prints:   in doubt: mail
// prints: with semel and verify
// prints:   start 2: executed
// prints:   start 3: executed
// prints:   landed: digest of 2026-06-19, digest of 2026-06-20
