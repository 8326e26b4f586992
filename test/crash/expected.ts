// What happens to a call whose process is killed: the promise of semel, crash point by crash point. This table is the
// documentation, and test/crash/matrix.test.ts makes every cell of it happen.
//
// The four words are what later callers hear: at once · after the lease · once nothing of the dead process can still
// be on its way (`verifyAfter`) · one call later, after a person looked at the target where it still was in doubt.
// The number is how often the effect landed in the end.
//
//   run     the effect was executed by this call
//   replay  the value of an earlier execution, nothing was done
//   busy    IN_FLIGHT: the dead process still holds its lease. Where its death can be proven, callers hear at once what they
//           would hear after the lease (`withProof`)
//   doubt   IN_DOUBT: it may have landed, nothing was done

import type { LineName } from './lines.ts';
import type { Point } from './points.ts';

export type Row = Readonly<Partial<Record<Point, string>>>;

const once = {
  'before claim': 'run · replay · replay · replay = 1',
  settled: 'replay · replay · replay · replay = 1',
  'before the reply': 'replay · replay · replay · replay = 1',
};

/** Nobody but a person can decide what died after the line. */
const held = {
  dispatched: 'busy · doubt · doubt · run = 1',
  landed: 'busy · doubt · doubt · replay = 1',
};

/** The target knows the key, so sending it again is no second effect. */
const sentAgain = {
  dispatched: 'busy · run · replay · replay = 1',
  landed: 'busy · run · replay · replay = 1',
};

/** The tool can ask; "not landed" is believed only once nothing can still be on its way. */
const asked = {
  dispatched: 'busy · doubt · run · replay = 1',
  landed: 'busy · replay · replay · replay = 1',
};

export const expected: Readonly<Record<LineName, Row>> = {
  read: {
    dispatched: 'run · run · run · run = 4',
    landed: 'run · run · run · run = 5',
    'before the reply': 'run · run · run · run = 5',
  },
  'write-idempotent': {
    'before claim': 'run · run · run · run = 4',
    claimed: 'busy · run · run · run = 3',
    dispatched: 'busy · run · run · run = 3',
    landed: 'busy · run · run · run = 4',
    settled: 'run · run · run · run = 5',
    'before the reply': 'run · run · run · run = 5',
  },
  plain: { ...once, claimed: held.dispatched, ...held },
  keyed: { ...once, claimed: sentAgain.dispatched, ...sentAgain },
  verified: { ...once, claimed: asked.dispatched, ...asked },
  explicit: { ...once, claimed: 'busy · run · replay · replay = 1', ...held },
  prepared: {
    ...once,
    claimed: 'busy · run · replay · replay = 1',
    prepared: 'busy · run · replay · replay = 1',
    ...held,
  },
  'prepared-keyed': {
    ...once,
    claimed: 'busy · run · replay · replay = 1',
    prepared: 'busy · run · replay · replay = 1',
    ...sentAgain,
  },
  'explicit-verified': { ...once, claimed: 'busy · run · replay · replay = 1', ...asked },
  // The one switch that gives the guarantee up, and says so on the receipt.
  rerun: {
    ...once,
    claimed: 'busy · run · replay · replay = 1',
    dispatched: 'busy · run · replay · replay = 1',
    landed: 'busy · run · replay · replay = 2',
  },
  irreversible: { ...once, claimed: held.dispatched, ...held },
  'irreversible-keyed': { ...once, claimed: sentAgain.dispatched, ...sentAgain },
  'irreversible-verified': { ...once, claimed: asked.dispatched, ...asked },
};

/** The same, where the kernel says that the process is dead: nobody waits for its lease. */
export function withProof(row: Row): Row {
  return Object.fromEntries(Object.entries(row).map(([point, cell]) => [point, withoutBusy(cell)]));
}

function withoutBusy(cell: string): string {
  const [words = '', landed] = cell.split(' = ');
  const [first, second, third, ...rest] = words.split(' · ');
  if (first !== 'busy') return cell;
  // A call that runs at once leaves the next one its value, or a write of its own.
  const next = second === 'run' ? third : second;
  const isWrite = second === 'run' && third === 'run';
  return `${[second, next, third, ...rest].join(' · ')} = ${Number(landed) + (isWrite ? 1 : 0)}`;
}
