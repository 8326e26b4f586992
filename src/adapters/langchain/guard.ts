// Wraps one tool of LangChain. It stays what it is, with its name, its schema and its class: only what it does goes
// through the ledger. So the guard is inside of every middleware and of every retry of the agent.

import { SemelError } from '../../core/errors.ts';
import { createGuard, type Guard, type Policy } from '../../guard/index.ts';
import type { Semel } from '../../semel/index.ts';
import { isControlFlow, whoAsks } from './identity.ts';
import { keep } from './kept.ts';
import { finish, type Telling, told } from './message.ts';
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
  if (isGuarded(tool)) throw twice(bare.name);
  const { name, schema, description } = bare;
  const guarding = createGuard(semel, name, policy as Policy, { isControlFlow, schema, description });
  return guarding === undefined ? tool : (wrapped(bare, guarding) as unknown as Tool);
}

const guardedTools = new WeakSet<object>();

export function isGuarded(tool: object): boolean {
  return guardedTools.has(tool);
}

export function wrapped(tool: LangChainTool, guarding: Guard, argsOf: ArgsOf = parsed): LangChainTool {
  const isPair = tool.responseFormat === 'content_and_artifact';
  const calling =
    (telling: Telling) =>
    async (args: unknown, manager?: RunManager, config: CallConfig = {}) => {
      const { toolCall, signal, ...rest } = config;
      const toolCallId = toolCall?.id ?? config.toolCallId;
      const identity = () => whoAsks(config);
      const answer = await guarding.call(
        { args: argsOf(args, config), toolCallId, signal, identity },
        async (given) => {
          // Without the signal: `tool` forgets what it started when that fires, and the world does not.
          const unhurried = toolCall === undefined ? rest : { ...rest, toolCall };
          const itself = await ended(await tool._call(given, manager, unhurried), manager);
          telling.output = { itself };
          return keep(itself);
        },
      );
      return told(answer, isPair, toolCall?.id !== undefined, telling);
    };
  const guarded = Object.create(Object.getPrototypeOf(tool), Object.getOwnPropertyDescriptors(tool));
  const alone: AnyFunction = (...asked: Parameters<ReturnType<typeof calling>>) => calling({})(...asked);
  const own = (value: unknown) => ({ value, writable: true, configurable: true });
  Object.defineProperties(guarded, {
    call: own(async (...asked: readonly unknown[]) => {
      const telling: Telling = {};
      const once = Object.create(guarded, { _call: own(calling(telling)) });
      return finish(await tool.call.apply(once, asked as []), telling);
    }),
    _call: own(alone),
    ...(tool.func === undefined ? {} : { func: own(alone) }),
  });
  guardedTools.add(guarded);
  return guarded;
}

function twice(name: string): SemelError {
  return new SemelError('CONTRACT_INVALID', `${name} is guarded already.`, {
    path: name,
    next: 'Guard it once: of two policies only the first would count.',
  });
}

/** What the ledger is told of the args. */
type ArgsOf = (parsed: unknown, config: CallConfig) => unknown;

const parsed: ArgsOf = (args) => args;

interface RunManager {
  readonly handleToolEvent?: (part: unknown) => unknown;
}

/** A tool may be a generator: what it yields is shown while it works, and what it returns is the result. */
async function ended(output: unknown, manager: RunManager | undefined): Promise<unknown> {
  if (!isGenerator(output)) return output;
  for (;;) {
    const { done, value } = await output.next();
    if (done === true) return value;
    // Whoever watches cannot stop what is under way.
    try {
      await manager?.handleToolEvent?.(value);
    } catch {}
  }
}

function isGenerator(output: unknown): output is AsyncGenerator {
  return Object.prototype.toString.call(output) === '[object AsyncGenerator]';
}
