// `semel store accept-loss`: a person allows a store that lost records to be used again.

import { isSemelError } from '../../../core/errors.ts';
import { loginName } from '../../../semel/index.ts';
import type { Store } from '../../../store/store.ts';
import { confirm } from '../../args/confirm.ts';
import { mustBeOperator } from '../../caller.ts';
import { storeFor } from '../../ledger.ts';
import { complain, print, printJson } from '../../render/print.ts';
import type { StoreValues } from './values.ts';

export async function acceptLoss(values: StoreValues): Promise<number> {
  mustBeOperator('store', '`accept-loss`');
  const store = await storeFor(values);
  try {
    if (store.acceptLoss === undefined) {
      const { kind } = await store.open();
      if (values.json) printJson({ accepted: false });
      else print(`A ${kind} store does not need this: it refuses to run if it cannot keep records.`);
      return 0;
    }
    const loss = (await lossOf(store)) ?? 'The store may have lost records.';
    if (!values.yes)
      complain(
        `${loss} The effects of the missing records may be repeated by the next call: check what was done since, and import what you know (\`semel import\`).`,
      );
    if (!(await confirm('Use it as it is?', { command: 'store', yes: values.yes }))) {
      print('Nothing was changed.');
      return 70;
    }
    await store.acceptLoss({ by: loginName(), note: values.note ?? null });
    if (values.json) printJson({ accepted: true });
    else print('Accepted: the store is in use again.');
    return 0;
  } finally {
    await store.close();
  }
}

/** Why the store refuses to be used; undefined where it does not. */
async function lossOf(store: Store): Promise<string | undefined> {
  try {
    await store.open();
    return undefined;
  } catch (error) {
    if (isSemelError(error) && error.code === 'STORE_UNSAFE') return error.happened;
    throw error;
  }
}
