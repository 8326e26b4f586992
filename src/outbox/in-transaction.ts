// A call whose effect and record commit with the caller's transaction: exactly once. The rules and the path are those of every
// call; only the store is the ledger inside the transaction. A refused or failed call leaves nothing, even if the caller commits.

import type { AttemptContext, Call, Result, Tool } from '../call/index.ts';
import { describeThrown } from '../core/contract/classify.ts';
import { SemelError, withReceipt } from '../core/errors.ts';
import { AlreadyLanded, isSignal, MaybeLanded, NotLanded } from '../core/signals.ts';
import { type CallOptions, type Engine, engineOf, type ToolFunction } from '../semel/index.ts';
import type { InTransaction, Transactions } from '../store/transaction.ts';
import { inOrder } from './in-order.ts';

type AnyTool = Pick<ToolFunction<unknown, unknown>, 'contract'>;

/** The result of the call; rejects with what `run` threw. Nothing of it is durable before the caller commits. */
export async function runInTransaction(
  semel: object,
  tool: AnyTool,
  tx: unknown,
  args: unknown,
  options: CallOptions = {},
): Promise<Result> {
  const engine = engineOf(semel);
  const call = await engine.makeCall(tool, args, options);
  // Only an open store shows what it can do.
  await engine.open();
  const transactions = transactionsOf(engine);
  const run = () => transactions.within(tx, (inside) => runInside(engine, call, inside));
  try {
    return await inOrder(tx, run);
  } catch (error) {
    // Thrown so that the savepoint is undone.
    if (error instanceof Refused) return error.result;
    throw error;
  }
}

export function transactionsOf({ store }: Engine): Transactions {
  if (store.transactions !== undefined) return store.transactions;
  throw new SemelError(
    'STORE_UNSAFE',
    'The store of this Semel instance cannot take part in a transaction.',
    {
      next: 'Nothing was run. Use a SQLite or Postgres store in the database that the transaction is on.',
    },
  );
}

class Refused extends Error {
  readonly result: Result;

  constructor(result: Result) {
    super('refused');
    this.result = result;
  }
}

async function runInside(engine: Engine, call: Call, inside: InTransaction): Promise<Result> {
  const { pipeline, ledger } = engine.pipelineOn({
    ...inside.store,
    // Nobody else can see the claim before it is settled, so there is no lease to keep.
    claim: (request) => inside.store.claim({ ...request, leaseMs: longestMs }),
    renew: async () => ({ held: true, record: undefined }),
  });
  const effect = trackEffect(call.tool, inside);
  const running = Promise.resolve(pipeline.run(call.with({ tool: effect.tool })));
  // Where nothing is enforced, it rejects with what the effect was made to throw.
  await running.catch(() => undefined);
  // A caller who gave up is answered at once, but the effect keeps the transaction until it ends.
  await effect.ended();
  const thrown = effect.thrown();
  if (thrown !== undefined) throw outside(call.tool.contract.name, thrown.error);
  const result = await running;
  // A statement that fails says so itself: here the claim was gone, and the effect with it.
  if (!result.ok && result.error.code === 'UNRECORDED') throw undoneError(call.tool.contract.name);
  const receipt = { ...result.receipt, uncommitted: true as const };
  if (!result.ok) throw new Refused({ ok: false, error: withReceipt(result.error, receipt), receipt });
  await ledger.close();
  return { ...result, receipt };
}

/** Longer than any transaction. */
const longestMs = 7 * 24 * 3_600_000;

interface TrackedEffect {
  readonly tool: Tool;
  thrown(): { readonly error: unknown } | undefined;
  ended(): Promise<void>;
}

/** The tool as it runs inside a transaction: with `ctx.tx`, once, for as long as the transaction lasts, and never waiting. */
function trackEffect(tool: Tool, { tx, isSame, end }: InTransaction): TrackedEffect {
  const { contract, prepare } = tool;
  let thrown: { readonly error: unknown } | undefined;
  let running: Promise<unknown> = Promise.resolve();

  const withTx =
    (step: (args: never, ctx: AttemptContext) => unknown) => (args: never, ctx: AttemptContext) => {
      Object.defineProperty(ctx, 'tx', { value: tx, enumerable: true });
      const result = track(() => step(args, ctx));
      running = result.catch(() => undefined);
      return result;
    };

  async function track(step: () => unknown): Promise<unknown> {
    try {
      const value = await step();
      if (await isSame()) return value;
      thrown = { error: endedInsideError(contract.name) };
    } catch (error) {
      if (error instanceof AlreadyLanded && (await isSame())) throw error;
      thrown = { error };
      end();
      throw new NotLanded('it is undone with its savepoint', { cause: error });
    }
    // If the claim was committed, it is in doubt from now on.
    throw new MaybeLanded('it ended its transaction', { cause: thrown.error });
  }

  return {
    tool: {
      ...tool,
      contract: {
        ...contract,
        ifBusy: contract.ifBusy === 'skip' ? 'skip' : 'fail',
        timeoutMs: Number.POSITIVE_INFINITY,
        retry: { ...contract.retry, tries: 1 },
      },
      run: withTx(tool.run),
      ...(prepare === undefined ? {} : { prepare: withTx(prepare) }),
    },
    thrown: () => thrown,
    ended: async () => void (await running),
  };
}

/** What `run` throws comes out as it is, except its word about itself: an effect around the transaction would take it for its own. */
function outside(name: string, error: unknown): unknown {
  if (!isSignal(error)) return error;
  return new SemelError('NOT_LANDED', `${name} did not land: ${describeThrown(error)}.`, { cause: error });
}

function endedInsideError(name: string): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `\`run\` of ${name} ended its caller's transaction with a COMMIT or ROLLBACK: its effect may be committed, or undone.`,
    {
      next: 'Check which. Let `run` send its statements through `ctx.tx`, and leave the transaction to its caller.',
      evidence: { mayLand: true },
    },
  );
}

function undoneError(name: string): SemelError {
  return new SemelError(
    'STORE_UNSAFE',
    `\`run\` of ${name} rolled back to its caller's savepoint, which undid its claim and its effect.`,
    { next: 'Roll the transaction back. Let `run` roll back only to savepoints that it has set itself.' },
  );
}
