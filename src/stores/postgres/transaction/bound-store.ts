// A store whose statements go through the caller's client, for one call inside its transaction.

import type { Clock, Random } from '../../../core/clock.ts';
import { isSemelError } from '../../../core/errors.ts';
import type { RemoteBackend } from '../../../store/remote/backend.ts';
import { remoteStore } from '../../../store/remote/remote-store.ts';
import { endedError, type InTransaction, unavailable } from '../../../store/transaction.ts';
import { encodeArray } from '../array.ts';
import { type Call, encodeEvent, exchange } from '../exchange.ts';
import { qualify, schemaVersion } from '../schema.ts';
import { buildStatements, encodeValues, parseAnswer } from '../statements.ts';
import { ask, type Row } from './ask.ts';
import type { CallerTransaction } from './client.ts';

export interface BoundStore extends Pick<InTransaction, 'store' | 'isSame' | 'end'> {
  /** The first error of semel's own statements: after it, the transaction accepts no others. */
  failure(): unknown;
}

export interface BoundStoreOptions {
  readonly schema: string;
  readonly where: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** What the caller's transaction says about itself. */
export interface Bound {
  /** Its `lock_timeout`. */
  readonly lockTimeout: string;
  readonly now: number;
  /** Its id, as a text. */
  readonly id: string;
}

/** How long to wait for another transaction with the same key, unless the caller's `lock_timeout` says. */
const patience = '10s';

const idText = 'SELECT pg_catalog.txid_current_if_assigned()::text AS answer';

/** Makes them, once for a ledger. */
export function boundStores({ schema, where, clock, random }: BoundStoreOptions) {
  const statements = buildStatements(schema, 'transaction');
  const appendText = qualify(
    schema,
    'SELECT semel.append($1::text::json, $2::text::integer)::text AS answer',
  );
  return bindStore;

  function bindStore(inner: CallerTransaction, { lockTimeout, now, id }: Bound): BoundStore {
    let failure: unknown;
    let isOver = false;

    async function send(text: string, values: readonly (string | null)[]): Promise<Row | undefined> {
      if (isOver || failure !== undefined) throw endedError(failure);
      try {
        return await ask(inner, text, values);
      } catch (error) {
        failure = error;
        throw error;
      }
    }

    const call: Call = async (question, values) => {
      const texts = encodeValues(question, values, (_, list) => encodeArray(list)).map((value) =>
        value === null ? null : String(value),
      );
      const { text } = statements[question];
      if (question !== 'look') texts[texts.length - 2] = lockTimeout === '0' ? patience : lockTimeout;
      return parseAnswer(await send(text, [...texts, lockTimeout]));
    };

    const backend: RemoteBackend = {
      open: async () => ({
        kind: 'postgres',
        location: where,
        address: undefined,
        forgets: undefined,
        clockProblem: undefined,
      }),
      now: async () => now,
      exchange: (swaps) => exchange(call, swaps),
      async append(events) {
        const noted = events.map((event, i) => ({ i, ...encodeEvent(event) }));
        await send(appendText, [JSON.stringify(noted), String(schemaVersion)]);
      },
      list: unavailable,
      due: unavailable,
      remove: unavailable,
      history: unavailable,
      namespaces: unavailable,
      close: async () => undefined,
      // Not retriable: the transaction has failed as a whole.
      judge: (error) => ({ error: isSemelError(error) ? error : endedError(error), concernsAll: true }),
    };
    return {
      store: remoteStore(backend, { clock, random }),
      failure: () => failure,
      isSame: async () => (await send(idText, []))?.answer === id,
      /** From now on nothing is sent: the client belongs to its owner again. */
      end() {
        isOver = true;
      },
    };
  }
}
