// The tools of one namespace, each defined by its policy: from the policy file, or by the clients themselves where the operator
// allows that.

import { isDeepStrictEqual } from 'node:util';
import type { Tool } from '../../call/index.ts';
import { type Contract, defineContract } from '../../core/contract/contract.ts';
import { SemelError } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import { isReserved } from '../../jobs/library/index.ts';
import { type FilePolicy, type PolicyFile, readPolicyFile, toTerms } from '../../mcp/index.ts';
import {
  engineOf,
  forgetTool,
  markExternal,
  type Semel,
  type ToolDefinition,
  type ToolFunction,
} from '../../semel/index.ts';

export type ServedTool = ToolFunction<unknown, unknown>;

export interface ServedTools {
  /** `inline` must equal the policy of the file; another program's may differ. A step of a known tool needs no permission to be defined. */
  find(name: string, inline: FilePolicy | undefined, isStep?: boolean): ServedTool;
  /** For a report: under the terms that its attempt brings along. Calls may have others by now, and be refused under these. */
  findUnder(name: string, inline: FilePolicy | undefined): Tool;
  list(): readonly {
    readonly name: string;
    readonly contract: Contract;
    readonly source: 'file' | 'client';
  }[];
}

interface KnownTool {
  readonly tool: ServedTool;
  readonly source: 'file' | 'client';
  /** Nobody has defined it but an attempt that has this step. */
  readonly isStep?: boolean;
  /** The last policy of a client that was found to say the same. */
  inline?: string;
}

/** Counts what clients define in all namespaces: a client that can choose its namespace must not fill the memory with tools. */
export interface Defined {
  count: number;
}

export function createServedTools(
  semel: Semel,
  file: PolicyFile,
  { mayDefine, defined = { count: 0 } }: { readonly mayDefine: boolean; readonly defined?: Defined },
): ServedTools {
  const known = new Map<string, KnownTool>();
  const policies = Object.entries(file.tools ?? {});
  for (const [name, policy] of policies) define(name, policy, 'file');

  function define(name: string, policy: string | FilePolicy, source: 'file' | 'client'): ServedTool {
    // An equal contract may be defined again; another one is refused, and the error names what differs.
    const definition = { ...toTerms(name, policy), run: executedElsewhere };
    const tool = semel.tool(definition as unknown as ToolDefinition<unknown, unknown>) as ServedTool;
    markExternal(tool);
    known.set(name, { tool, source: known.get(name)?.source ?? source });
    return tool;
  }

  /** Says that the definition changed: after editing and restarting a program, nobody should search it for a second one. */
  function redefine(name: string, policy: FilePolicy): ServedTool {
    try {
      return define(name, policy, 'client');
    } catch (error) {
      if (!(error instanceof SemelError) || error.code !== 'CONTRACT_INVALID') throw error;
      throw new SemelError('CONTRACT_INVALID', error.happened, {
        ...(error.path === undefined ? {} : { path: error.path }),
        next: `${error.correctiveAction} This server keeps the first terms until it ends: restart it. One that a client started ends when nobody has called for a while (SEMEL_IDLE).`,
      });
    }
  }

  /** The step that was used longest ago is forgotten first. */
  function keepAsNewest(name: string, step: KnownTool): void {
    known.delete(name);
    known.set(name, step);
  }

  /** Names of steps may hold ids: a thousand of them must not refuse all further ones. */
  function forgetOldestStep(): void {
    for (const [name, { tool, isStep }] of known) {
      if (isStep !== true) continue;
      forgetTool(tool);
      known.delete(name);
      defined.count -= 1;
      return;
    }
  }

  return {
    find(name, inline, isStep = false) {
      const found = known.get(name);
      if (inline === undefined) {
        if (found !== undefined) return found.tool;
        throw unknownTool(name, mayDefine);
      }
      const text = JSON.stringify(inline);
      // A client sends its policy with each call, and to read one takes longer than the call.
      if (found?.inline === text && isStep === (found.isStep ?? false)) {
        if (isStep) keepAsNewest(name, found);
        return found.tool;
      }
      readPolicyFile(`{"version":1,"tools":{${JSON.stringify(name)}:${text}}}`, 'policy');
      if (found === undefined && !mayDefine && !isStep) throw unknownTool(name, false);
      // Jobs define theirs for each run: one that stays would refuse every run with other terms.
      if (found === undefined && isReserved(name))
        throw new SemelError('CONTRACT_INVALID', `${name} is a name of semel's own, for jobs.`, {
          path: 'tool',
          next: 'Use another name. An effect of a job belongs to /v1/jobs/step.',
        });
      // A step brings its terms along each time, so that it can be made anew.
      if (found === undefined && (known.size >= limits.guardedTools || defined.count >= limits.kept))
        forgetOldestStep();
      if (found === undefined && known.size >= limits.guardedTools)
        throw new SemelError('CONTRACT_INVALID', `This server has ${known.size} tools already.`, {
          path: 'tool',
          next: 'A tool is a kind of effect: put ids into `args`.',
        });
      if (found === undefined && defined.count >= limits.kept)
        throw new SemelError('CONTRACT_INVALID', `Clients have defined ${defined.count} tools already.`, {
          path: 'tool',
          next: 'Put tools into the policy file of the server.',
        });
      // A program that was started again with another lease or window is served by those. Another key would be another intent:
      // `define` refuses it.
      if (found?.source === 'client' && hasSameKeys(found.tool.contract, name, inline))
        forgetTool(found.tool);
      const tool = found?.source === 'client' ? redefine(name, inline) : define(name, inline, 'client');
      if (found === undefined) defined.count += 1;
      if (isStep && (found === undefined || found.isStep))
        keepAsNewest(name, { tool, source: 'client', isStep });
      (known.get(name) as KnownTool).inline = text;
      return tool;
    },
    findUnder(name, inline) {
      const found = known.get(name);
      const isSame = inline === undefined || found?.inline === JSON.stringify(inline);
      const tool = isSame ? engineOf(semel).find(name)?.tool : undefined;
      if (tool !== undefined) return tool;
      if (inline === undefined) throw unknownTool(name, mayDefine);
      return { contract: contractOf(name, inline), run: executedElsewhere };
    },
    list: () => [...known].map(([name, { tool, source }]) => ({ name, contract: tool.contract, source })),
  };
}

function hasSameKeys(known: Contract, name: string, inline: FilePolicy): boolean {
  const keyTerms = ({ effect, per, fields }: Contract) => ({ effect, per, fields });
  return isDeepStrictEqual(keyTerms(known), keyTerms(contractOf(name, inline)));
}

function contractOf(name: string, policy: FilePolicy): Contract {
  return defineContract(toTerms(name, policy), { hasVerify: false, hasPrepare: false });
}

function unknownTool(name: string, mayDefine: boolean): SemelError {
  return new SemelError('CONTRACT_INVALID', `There is no tool ${JSON.stringify(name)}.`, {
    path: 'tool',
    next: mayDefine
      ? 'Send its `policy` with the call.'
      : 'Add it to the policy file of the server, or start the server with --define to let clients define tools.',
  });
}

/** A client executes it. */
function executedElsewhere(): never {
  throw new SemelError('CONTRACT_INVALID', 'This tool is executed by a client.', {
    next: 'Call it over HTTP.',
  });
}
