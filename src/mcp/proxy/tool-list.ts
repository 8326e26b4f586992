// The tools of a server as it lists them: asked for once, however many calls wait for the answer.

import { limits } from '../../core/limits.ts';
import { type ListedTool, toolsIn } from '../protocol/messages.ts';

export interface ToolList {
  /** How much is kept of it, in characters. */
  readonly size: number;
  /** A page of the list that came by. */
  see(message: unknown): void;
  /** The server says that its list has changed. */
  forget(): void;
  /** Undefined: it is not listed, or the list could not be had. `ask` sends a tools/list with these params. */
  find(name: string, ask: (params: object) => Promise<unknown>): Promise<ListedTool | undefined>;
}

/** A server that does not list its tools by then is asked without its list. */
const patienceMs = 10_000;

/** What a tool takes besides its name, where only its hints are kept. */
const besideItsName = 100;

/** `onWhole` is shown the list whenever its last page has come. Without it only what a policy depends on is kept. */
export function toolList(onWhole?: (tools: readonly ListedTool[]) => void): ToolList {
  const tools = new Map<string, ListedTool>();
  let listing: Promise<void> | undefined;
  let characters = 0;

  function keep(tool: ListedTool): void {
    if (tools.size >= limits.listEntries) return;
    if (!tools.has(tool.name)) characters += tool.name.length + besideItsName;
    tools.set(tool.name, onWhole === undefined ? hintsOf(tool) : tool);
  }

  function see(message: unknown): string | undefined {
    const { tools: some, next } = toolsIn(message);
    for (const tool of some) keep(tool);
    // Without a tool it may be no list, but an error.
    if (next === undefined && some.length > 0) onWhole?.([...tools.values()]);
    return next;
  }

  async function list(ask: (params: object) => Promise<unknown>): Promise<void> {
    let cursor: string | undefined;
    for (let page = 0; page < limits.listPages; page += 1) {
      cursor = see(await ask(cursor === undefined ? {} : { cursor }));
      if (cursor === undefined) return;
    }
  }

  return {
    get size() {
      return characters;
    },
    see: (message) => void see(message),
    forget() {
      tools.clear();
      characters = 0;
    },
    async find(name, ask) {
      if (!tools.has(name)) {
        listing ??= inTime(list(ask)).finally(() => {
          listing = undefined;
        });
        await listing;
      }
      return tools.get(name);
    },
  };
}

/** A list is kept per caller, and anybody can be a thousand callers: schemas and descriptions would fill the memory. */
function hintsOf({ name, annotations }: ListedTool): ListedTool {
  const { readOnlyHint, idempotentHint } = annotations ?? {};
  return {
    name,
    annotations: { readOnlyHint: readOnlyHint === true, idempotentHint: idempotentHint === true },
  };
}

function inTime(work: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, patienceMs);
  work.then(resolve, () => resolve());
  return promise.finally(() => clearTimeout(timer));
}
