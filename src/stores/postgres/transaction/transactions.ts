// The ledger inside its caller's transaction: the rules decide as for the store itself, and every statement goes through the
// caller's client. Refuses a transaction on another database, or one in which a key could be claimed twice.

import { isSemelError, SemelError } from '../../../core/errors.ts';
import { view } from '../../../rules/state.ts';
import type { Intent } from '../../../store/outbox.ts';
import type { Transactions } from '../../../store/transaction.ts';
import { type Connection, isTrue, isUnknownStatement } from '../client.ts';
import { isConflict, isLockTimeout, judge, readSqlState } from '../failure.ts';
import { hides } from '../open.ts';
import { encodeIntent, encodeNewIntent, type StageAnswer, toRow } from '../outbox.ts';
import { place, stageNewParameters, stageParameters } from '../outbox-functions.ts';
import { decodeFound, type Packed } from '../rows.ts';
import { qualify, schemaVersion } from '../schema.ts';
import { nameStatement } from '../statements.ts';
import { ask, isFromLedger, type Row } from './ask.ts';
import { type Bound, type BoundStore, type BoundStoreOptions, boundStores } from './bound-store.ts';
import { adaptTransaction, type CallerTransaction, notOpenError } from './client.ts';

interface TransactionsOptions extends BoundStoreOptions {
  /** Opens the store itself. */
  open(): Promise<unknown>;
  /** Through the store's own connection. */
  readonly query: Connection['query'];
}

/** Pruning raised the floor while the claim waited: the next attempt sees it. */
const floorRaised = 'SM001';
const mostTries = 5;

interface Probe extends Bound {
  readonly place: string;
  readonly isolation: string;
  readonly readOnly: string;
  readonly encoding: string;
  readonly nulls: string;
  readonly hides: boolean | string;
}

export function postgresTransactions(options: TransactionsOptions): Transactions {
  const { schema, where } = options;
  const bindStore = boundStores(options);
  const placeText = qualify(schema, `SELECT ${place} AS answer FROM semel.meta m`);
  const probeText = qualify(
    schema,
    `SELECT pg_catalog.json_build_object('place', ${place},
    'isolation', pg_catalog.current_setting('transaction_isolation'),
    'readOnly', pg_catalog.current_setting('transaction_read_only'),
    'encoding', pg_catalog.current_setting('client_encoding'),
    'nulls', pg_catalog.current_setting('array_nulls'),
    'lockTimeout', pg_catalog.current_setting('lock_timeout'),
    'hides', ${hides}, 'now', semel.now_ms(), 'id', pg_catalog.txid_current()::text)::text AS answer FROM semel.meta m`,
  );
  const stageList = stageParameters.map((_, index) => `$${index + 1}`).join(', ');
  const stageText = (anyway: boolean) =>
    qualify(schema, `SELECT semel.stage(${stageList}, ${anyway}, ${schemaVersion}) AS answer`);
  const stageTexts = { first: stageText(false), anyway: stageText(true) };
  const newList = stageNewParameters.map((_, index) => `$${index + 1}`).join(', ');
  const stageNewName = nameStatement('stage', schema);
  const stageNewText = qualify(
    schema,
    `SELECT semel.stage_new(${newList}, ${schemaVersion}) AS answer, pg_catalog.pg_backend_pid()::text AS pid`,
  );
  const driftText = qualify(schema, 'SELECT semel.note_drift($1::text::bigint, $2::text)::text AS answer');
  const unstageText = qualify(
    schema,
    'DELETE FROM semel.outbox WHERE n OPERATOR(pg_catalog.=) $1::text::bigint RETURNING n::text AS answer',
  );
  let knownPlace: string | undefined;

  return {
    async within(tx, work) {
      const transaction = adaptTransaction(tx);
      await options.open();
      for (let tries = 1; ; tries += 1) {
        let failure: unknown;
        try {
          return await transaction.savepoint(async (inner) => {
            const bound = await bind(inner);
            try {
              const result = await work({ ...bound, tx: inner.tx });
              if (bound.failure() === undefined) return result;
              throw bound.failure();
            } finally {
              failure = bound.failure();
              bound.end();
            }
          });
        } catch (error) {
          if (readSqlState(failure) === floorRaised && tries < mostTries) continue;
          // The statement that failed says more than what the call made of it.
          throw explain(failure ?? error);
        }
      }
    },
    async stage(tx, intent, mayStage) {
      let answer = await stageNew(tx, intent);
      if (typeof answer === 'number') return { n: answer };
      while (answer.records !== undefined) {
        const time = { wall: answer.now, mono: answer.now, boot: 'store', steady: true };
        const found = answer.records.map((values) => view(decodeFound(values as Packed).row, time));
        if (!mayStage(found)) return undefined;
        answer = await stage(tx, intent, true);
      }
      if (answer.existing != null) return { existing: toRow(answer.existing) };
      if (answer.n != null) return { n: Number(answer.n) };
      throw new SemelError(
        'STORE_UNSAFE',
        `The outbox at ${where} did not store the intent: a trigger or row-level security blocked it.`,
        {
          next: 'Nothing was staged. Roll the transaction back, and remove the trigger or policy from the table.',
        },
      );
    },
    async unstage(tx, n) {
      await send(adaptTransaction(tx), unstageText, [String(n)]);
    },
    async noteDrift(tx, n, fields) {
      await send(adaptTransaction(tx), driftText, [String(n), JSON.stringify(fields)]);
    },
  };

  /** `place` in the caller's transaction, or why it cannot be used. */
  async function checkPlace(found: string): Promise<void> {
    if (found !== knownPlace) await learnPlace();
    if (found !== knownPlace) throw otherPlaceError();
  }

  /** Proves that a transaction is open, if the driver does not show it; undoes nothing. */
  async function send(
    transaction: CallerTransaction,
    text: string,
    values: readonly (string | null)[],
    name?: string,
  ): Promise<Row | undefined> {
    await options.open();
    try {
      return await (transaction.isKnownOpen
        ? ask(transaction, text, values, name)
        : transaction.savepoint((inner) => ask(inner, text, values)));
    } catch (error) {
      throw isElsewhere(error) ? otherPlaceError(error) : explain(error);
    }
  }

  /** The number of its row, in the ordinary case. */
  async function stageNew(tx: unknown, intent: Intent): Promise<number | StageAnswer> {
    await options.open();
    if (knownPlace === undefined) await learnPlace();
    const values = encodeNewIntent(intent, knownPlace as string);
    if (values === undefined) return stage(tx, intent, false);
    const transaction = adaptTransaction(tx);
    const row = await send(transaction, stageNewText, values, stageNewName);
    const said = row?.answer as string;
    if (!said.startsWith('{')) {
      // Its place was compared where it was written.
      transaction.learnSession?.(Number(row?.pid));
      return Number(said);
    }
    const answer = JSON.parse(said) as StageAnswer;
    await checkPlace(answer.place);
    return answer;
  }

  async function stage(tx: unknown, intent: Intent, isAnyway: boolean): Promise<StageAnswer> {
    const transaction = adaptTransaction(tx);
    const row = await send(
      transaction,
      isAnyway ? stageTexts.anyway : stageTexts.first,
      encodeIntent(intent),
    );
    const answer = JSON.parse(row?.answer as string) as StageAnswer;
    // If it was another ledger, the caller's transaction is to be rolled back.
    await checkPlace(answer.place);
    return answer;
  }

  /** Errors of the effect, and of the transaction as a whole, stay what they are: a caller's retries know them. */
  function explain(error: unknown): unknown {
    if (isSemelError(error) || readSqlState(error) === undefined || isConflict(error)) return error;
    const state = readSqlState(error);
    if (state === '25P01') return notOpenError(error);
    if (state === '25P02')
      return new SemelError('INVALID_ARGS', 'The transaction has failed already.', {
        path: 'tx',
        next: 'Nothing was run. Roll it back, and start again.',
        cause: error,
      });
    if (isUnknownStatement(error))
      return new SemelError('STORE_UNAVAILABLE', 'The session has lost its prepared statements.', {
        next: 'Nothing was staged. Roll the transaction back, and start again: no further statement is prepared.',
        cause: error,
      });
    if (isLockTimeout(error))
      return new SemelError('IN_FLIGHT', 'Another transaction has locked the record.', {
        next: 'Nothing was run. Call again; if it persists, look for a transaction that stays open.',
        cause: error,
      });
    return isFromLedger(error) ? judge(error, where).error : error;
  }

  async function bind(inner: CallerTransaction): Promise<BoundStore> {
    const probe = await ask(inner, probeText).then(
      (row) => JSON.parse(row?.answer as string) as Probe,
      (error) => {
        throw isElsewhere(error) ? otherPlaceError(error) : error;
      },
    );
    check(probe);
    await checkPlace(probe.place);
    return bindStore(inner, probe);
  }

  /** Again if it differs: the server may have been restarted. */
  async function learnPlace(): Promise<void> {
    const [row] = await options.query(placeText).catch((error: unknown) => {
      throw judge(error, where).error;
    });
    knownPlace = String(row?.answer);
  }

  function check(probe: Probe): void {
    const refuse = (what: string, next: string): never => {
      throw new SemelError('STORE_UNSAFE', what, { next: `Nothing was run. ${next}` });
    };
    if (probe.isolation !== 'read committed')
      refuse(
        `The transaction's isolation level is ${probe.isolation}: it would not see a record that commits while it waits.`,
        'Begin it at isolation level read committed.',
      );
    if (probe.readOnly === 'on') refuse('The transaction is read-only.', 'Begin one that can write.');
    if (probe.encoding !== 'UTF8' && probe.encoding !== 'SQL_ASCII')
      refuse(
        `The transaction converts text to ${probe.encoding}, so other connections would not find what it writes.`,
        'Use a connection whose client_encoding is UTF8.',
      );
    if (probe.nulls === 'off')
      refuse('array_nulls is off in the transaction, which would corrupt records.', 'Switch it on.');
    if (isTrue(probe.hides))
      refuse(
        "Row security hides records of the ledger from the transaction's user.",
        'Switch it off for the tables of the ledger, or use a user with BYPASSRLS.',
      );
  }

  function otherPlaceError(cause?: unknown): SemelError {
    return new SemelError(
      'STORE_UNSAFE',
      `The transaction is not in the database of the ledger at ${where}: they could not commit together.`,
      {
        next: 'Nothing was run. Open the transaction on the database that the Semel instance stores its records in.',
        ...(cause === undefined ? {} : { cause }),
      },
    );
  }
}

/** No such schema, table or function: the transaction is in a database without this ledger. */
function isElsewhere(error: unknown): boolean {
  return ['3F000', '42P01', '42883'].includes(readSqlState(error) ?? '');
}
