// What is on record of a call that cannot be made any more: the tool's schema may refuse now what it took before. Runs nothing.

import type { Call, Pipeline, Result, Tool } from '../../call/index.ts';
import type { ErrorCode } from '../../core/errors.ts';
import type { CallOptions } from '../definition.ts';
import type { CallFactory } from './call-factory.ts';

/**
 * As a call that comes too late: it gets what was done, is being done, or is in doubt, and `verify` may decide. Undefined: there is
 * nothing under the key that the unchecked args have, or they have none. A schema that transforms may have made another key of them.
 */
export async function findEarlier(
  calls: CallFactory,
  pipeline: Pipeline,
  tool: Tool,
  args: unknown,
  options: CallOptions,
): Promise<Result | undefined> {
  if (tool.contract.mode !== 'enforce') return undefined;
  const call = await makeUnchecked(calls, tool, args, options);
  if (call === undefined) return undefined;
  const result = await pipeline.run(call.with({ tool: toLookup(tool, call), notAfter: 0 }));
  return !result.ok && ownNothing.has(result.error.code) ? undefined : result;
}

/** Nothing landed, or the record is another caller's. */
const ownNothing: ReadonlySet<ErrorCode> = new Set([
  'EXPIRED',
  'NOT_LANDED',
  'NOT_PERMITTED',
  'NO_IDENTITY',
] as const);

async function makeUnchecked(
  calls: CallFactory,
  tool: Tool,
  args: unknown,
  options: CallOptions,
): Promise<Call | undefined> {
  // A key of the caller's own finds the record whatever the args are.
  for (const each of options.key === undefined ? [args] : [args, {}])
    try {
      return await calls.make(tool, undefined, each, options);
    } catch {
      // It has no key then. What is wrong with it was reported when it was called.
    }
  return undefined;
}

function toLookup(tool: Tool, call: Call): Tool {
  const { contract, verify } = tool;
  return {
    ...tool,
    contract: { ...contract, ifBusy: 'fail' },
    onReplay: undefined,
    // These args were never checked: only those of the attempt itself, as they were stored, show what to look for.
    verify:
      verify &&
      ((args, context) =>
        args === call.args
          ? {
              verdict: 'unsure',
              because: 'the args do not fit the schema, and those that were sent were not stored',
            }
          : verify(args, context)),
  };
}
