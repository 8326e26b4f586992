// Guards one LangChain tool. Its name, schema and class stay; only its effect goes through the ledger. So the guard runs
// inside every middleware and every retry of the agent.

import { SemelError } from '../../core/errors.ts';
import { createGuard, type Guard, type Policy } from '../../guard/index.ts';
import type { Semel } from '../../semel/index.ts';
import { findIdentity, isControlFlow } from './identity.ts';
import { finish, type MessageExtras, toOutput } from './message.ts';
import { toStored } from './stored-output.ts';
import {
  type AnyFunction,
  type AnyTool,
  type CallConfig,
  checkTool,
  type InputOf,
  type LangChainTool,
} from './tool-shape.ts';

export function guard<Tool extends AnyTool>(
  semel: Semel,
  tool: Tool,
  policy: Policy<NoInfer<InputOf<Tool>>>,
): Tool {
  const bare = checkTool(tool);
  if (isGuarded(tool)) throw alreadyGuarded(bare.name);
  const { name, schema, description } = bare;
  const guarding = createGuard(semel, name, policy as Policy, { isControlFlow, schema, description });
  return guarding === undefined ? tool : (wrapTool(bare, guarding) as unknown as Tool);
}

const guardedTools = new WeakSet<object>();

export function isGuarded(tool: object): boolean {
  return guardedTools.has(tool);
}

export function wrapTool(tool: LangChainTool, guarding: Guard, readArgs: ReadArgs = sameArgs): LangChainTool {
  const isPair = tool.responseFormat === 'content_and_artifact';
  const runTool = async (args: unknown, manager: RunManager | undefined, config: CallConfig) =>
    drain(await tool._call(args, manager, config), manager);
  const calling =
    (extras: MessageExtras) =>
    async (args: unknown, manager?: RunManager, config: CallConfig = {}) => {
      const { toolCall, signal, ...rest } = config;
      const toolCallId = toolCall?.id ?? config.toolCallId;
      const identity = () => findIdentity(config);
      const answer = await guarding.call(
        { args: readArgs(args, config), toolCallId, signal, identity },
        async (given) => {
          // Without the signal: when it fires, `tool` abandons the effect, which may still land.
          const unhurried = toolCall === undefined ? rest : { ...rest, toolCall };
          const itself = await runTool(given, manager, unhurried);
          extras.output = { itself };
          return toStored(itself);
        },
      );
      return toOutput(answer, isPair, toolCall?.id !== undefined, extras);
    };
  const guarded = Object.create(Object.getPrototypeOf(tool), Object.getOwnPropertyDescriptors(tool));
  const alone: AnyFunction = (...args: Parameters<ReturnType<typeof calling>>) => calling({})(...args);
  const own = (value: unknown) => ({ value, writable: true, configurable: true });
  Object.defineProperties(guarded, {
    call: own(async (...args: readonly unknown[]) => {
      const extras: MessageExtras = {};
      const once = Object.create(guarded, { _call: own(calling(extras)) });
      return finish(await tool.call.apply(once, args as []), extras);
    }),
    _call: own(alone),
    ...(tool.func === undefined ? {} : { func: own(alone) }),
  });
  guardedTools.add(guarded);
  return guarding.makeTestable(guarded, async (args) => toStored(await runTool(args, undefined, {})));
}

function alreadyGuarded(name: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `${name} is guarded already.`, {
    path: name,
    next: 'Guard it once: a second policy would be ignored.',
  });
}

/** The args to put into the ledger. */
type ReadArgs = (args: unknown, config: CallConfig) => unknown;

const sameArgs: ReadArgs = (args) => args;

interface RunManager {
  readonly handleToolEvent?: (part: unknown) => unknown;
}

/** A generator tool's yields are shown while it works; its return value is the result. */
async function drain(output: unknown, manager: RunManager | undefined): Promise<unknown> {
  if (!isGenerator(output)) return output;
  for (;;) {
    const { done, value } = await output.next();
    if (done === true) return value;
    // A failing listener must not stop the effect.
    try {
      await manager?.handleToolEvent?.(value);
    } catch {}
  }
}

function isGenerator(output: unknown): output is AsyncGenerator {
  return Object.prototype.toString.call(output) === '[object AsyncGenerator]';
}
