// Guards every tool of an agent. Passes each call's tool on guarded, so that inner retries go through the ledger too. Only an
// inner middleware that swaps the tool could bypass it, and `inOrder` refuses that.

import { SemelError } from '../../core/errors.ts';
import {
  createGuard,
  type Guard,
  type Policy,
  refuseKeyFields,
  refuseUnknownFields,
} from '../../guard/index.ts';
import type { Semel } from '../../semel/index.ts';
import { isGuarded, wrapTool } from './guard.ts';
import { isControlFlow } from './identity.ts';
import { type AnyFunction, type AnyTool, checkTool } from './tool-shape.ts';

export interface GuardMiddleware {
  name: string;
  wrapToolCall: AnyFunction;
}

interface Request {
  readonly toolCall: { readonly name: string };
  readonly tool: AnyTool | undefined;
}

const guards = new WeakSet<object>();

export function guardMiddleware(semel: Semel, policies: Readonly<Record<string, Policy>>): GuardMiddleware {
  const known = new Map<string, Guard | undefined>();
  for (const [name, policy] of Object.entries(policies))
    known.set(name, createGuard(semel, name, policy, { isControlFlow }));
  const tools = new WeakMap<AnyTool, AnyTool>();
  const guardedFor = (tool: AnyTool): AnyTool => {
    const { name } = tool;
    if (isGuarded(tool)) return tool;
    // Throws: there is no policy.
    if (!known.has(name)) createGuard(semel, name, undefined);
    const guarding = known.get(name);
    if (guarding === undefined) return tool;
    const bare = checkTool(tool);
    refuseKeyFields(name, bare.schema, bare.description);
    refuseUnknownFields(name, policies[name], bare.schema);
    return wrapTool(bare, guarding);
  };
  const middleware: GuardMiddleware = {
    name: 'semel',
    wrapToolCall(request: Request, handler: AnyFunction) {
      const { tool, toolCall } = request;
      if (tool === undefined) return handler({ ...request, tool: missingTool(toolCall.name) });
      const guarded = tools.get(tool) ?? guardedFor(tool);
      tools.set(tool, guarded);
      return handler({ ...request, tool: guarded });
    },
  };
  guards.add(middleware);
  return middleware;
}

/** Replaces a tool that the agent does not have: one that an inner middleware adds would be unguarded. */
function missingTool(name: string): AnyTool {
  const text = `There is no tool ${name} here, and nothing was run.`;
  return { name, schema: undefined, invoke: async () => text };
}

/** Returns the list, if the guard is the innermost middleware that handles tool calls. */
export function inOrder<const List extends readonly object[]>(list: List): List {
  const first = list.findIndex((each) => guards.has(each));
  if (first < 0)
    throw new SemelError('CONTRACT_INVALID', 'There is no guard among the middleware.', {
      path: 'middleware',
      next: 'Add guardMiddleware(semel, policies) as the last one.',
    });
  const inside = list
    .slice(first + 1)
    .find((each) => 'wrapToolCall' in each && each.wrapToolCall !== undefined);
  if (inside === undefined) return list;
  const { name = 'another' } = inside as { name?: string };
  throw new SemelError(
    'CONTRACT_INVALID',
    `${name} is listed after the guard, so it runs inside it: what it retries or replaces would run unguarded.`,
    { path: 'middleware', next: 'List the guard last.' },
  );
}
