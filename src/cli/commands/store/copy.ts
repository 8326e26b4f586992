// `semel store copy`: moves a ledger to another store, or unseals it if the move is cancelled.

import { shellWord } from '../../../core/visible.ts';
import { redactAddress } from '../../../store/address.ts';
import { type Copied, copyLedger, type Progress, plan } from '../../../store/move/copy.ts';
import { startFilling } from '../../../store/move/ledger-state.ts';
import type { About, Raw } from '../../../store/move/raw.ts';
import type { Store } from '../../../store/store.ts';
import { confirm } from '../../args/confirm.ts';
import { mustBeOperator } from '../../caller.ts';
import { storeFor } from '../../ledger.ts';
import { complain, print, printAside, printable, printJson } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import type { StoreValues } from './values.ts';

export async function copy(values: StoreValues): Promise<number> {
  if (!values['dry-run']) mustBeOperator('store', '`copy`');
  const { from, to } = values;
  if (from === undefined) throw usageError('store', 'copy needs --from <url>, the ledger in use');
  if (values.unseal) return unseal(values, from);
  if (to === undefined) throw usageError('store', 'copy needs --to <url>, the new ledger');
  const dryRun = values['dry-run'] ?? false;
  return opened(from, {}, (source) =>
    opened(to, { make: true, migrate: !dryRun }, async (target) => {
      if (dryRun) return rehearse(rawOf(source), target, values);
      const onProgress = progressPrinter();
      const copied = await copyLedger({ source: rawOf(source), target: rawOf(target), onProgress });
      if (values.json) printJson(copied);
      else print(...ending(copied).map(printable));
      return 0;
    }),
  );
}

async function rehearse(source: Raw, target: Store, values: StoreValues): Promise<number> {
  const there = await source.about();
  const isUnmade = (await target.migration?.())?.from === 0;
  const found = isUnmade ? undefined : await rawOf(target).about();
  const here = found?.incarnation === '' ? undefined : found;
  const isNew = here === undefined;
  const step = plan(there, here);
  if (here !== undefined && step !== 'done')
    startFilling(here, there.incarnation, here.records === 0, here.address);
  if (values.json) printJson({ step, records: there.records, open: there.open, isNew });
  else print(printable(planText(step, there, here?.address ?? redactAddress(values.to ?? ''), isNew)));
  return 0;
}

function planText(step: ReturnType<typeof plan>, there: About, to: string, isNew: boolean): string {
  if (step === 'done')
    return `${there.address} was moved to ${there.movedTo} before: there is nothing to do.`;
  const what = `${there.records} records (${there.open} open) of ${there.address}`;
  const where = isNew ? 'a ledger that would be made' : to;
  return `Would ${step === 'copy' ? 'copy' : 'go on to copy'} ${what} to ${where}, and seal it.`;
}

async function unseal(values: StoreValues, from: string): Promise<number> {
  return opened(from, {}, async (store) => {
    const source = rawOf(store);
    const there = await source.about();
    if (there.movedTo === null) {
      print(printable(`${there.address} is not sealed.`));
      return 0;
    }
    complain(
      `${there.address} was sealed for ${there.movedTo}. If that ledger was opened, programs may have used it. This ledger does not know what they did, and would repeat it.`,
    );
    if (!(await confirm('Use the old ledger again?', { command: 'store', yes: values.yes }))) {
      print('Nothing was changed.');
      return 70;
    }
    // First the target, so that a copy that still runs cannot open it any more.
    if (values.to !== undefined)
      await opened(values.to, {}, async (target) => {
        const here = await rawOf(target).about();
        if (here.cameFrom === there.incarnation && !here.filling)
          throw usageError(
            'store',
            `the copy to ${here.address} was finished, and it may have been used since`,
            'Move it back with `semel store copy` to a new place; or, if no program used it, unseal without --to.',
          );
        await rawOf(target).abandon(there.incarnation);
        return 0;
      });
    await source.unseal();
    if (values.json) printJson({ unsealed: there.address });
    else print(printable(`${there.address} is in use again.`));
    return 0;
  });
}

async function opened(
  url: string,
  how: { readonly make?: boolean; readonly migrate?: boolean },
  work: (store: Store) => Promise<number>,
): Promise<number> {
  const store = await storeFor({ store: url }, how);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

function rawOf({ raw }: Store): Raw {
  if (raw !== undefined) return raw;
  throw usageError(
    'store',
    'this kind of store cannot be moved as a whole',
    'Use `semel export` and `semel import`, while no program uses it.',
  );
}

/** On stderr, and not for every page. */
const everyMs = 1_000;

function progressPrinter(): (progress: Progress) => void {
  let printedAt = 0;
  return ({ step, looked, written, total }) => {
    if (step === 'sealed') {
      printAside('sealed: programs get STORE_MOVED from now on');
      return;
    }
    if (looked < total && performance.now() - printedAt < everyMs) return;
    printedAt = performance.now();
    printAside(
      step === 'removed'
        ? `pruned meanwhile: ${written} of ${total} records`
        : `${step}: ${looked} of ${total} records, ${written} copied`,
    );
  };
}

function ending({ before, records, open, movedTo, closedMs }: Copied): readonly string[] {
  return [
    before
      ? `It was moved to ${movedTo} before: nothing was changed.`
      : `Done: ${records} records (${open} open) are at ${movedTo}, each compared; closed for ${(closedMs / 1000).toFixed(1)} s.`,
    `Set SEMEL_STORE=${shellWord(movedTo)} (with its password, where it has one) for all programs, and start them again.`,
  ];
}
