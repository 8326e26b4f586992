// A server's tools as it lists them. Concurrent calls share one request for the list.

import { limits } from '../../core/limits.ts';
import { type ListedTool, readToolPage } from '../protocol/messages.ts';

export interface ToolList {
  /** How many characters of it are kept. */
  readonly size: number;
  /** Adds a page of the list that passed through the proxy. */
  addPage(message: unknown): void;
  /** The server's list has changed. */
  forget(): void;
  /** Undefined if the tool is not listed or the list is unavailable. `ask` sends a tools/list with these params. */
  find(name: string, ask: (params: object) => Promise<unknown>): Promise<ListedTool | undefined>;
}

/** After this, the call goes on without the list. */
const listTimeoutMs = 10_000;

/** What a tool takes besides its name if only its hints are kept. */
const hintCharacters = 100;

/** `onComplete` gets the list whenever its last page has arrived. Without it, only the hints are kept. */
export function createToolList(onComplete?: (tools: readonly ListedTool[]) => void): ToolList {
  const tools = new Map<string, ListedTool>();
  let listing: Promise<void> | undefined;
  let characters = 0;

  function add(tool: ListedTool): void {
    if (tools.size >= limits.listEntries) return;
    if (!tools.has(tool.name)) characters += tool.name.length + hintCharacters;
    tools.set(tool.name, onComplete === undefined ? pickHints(tool) : tool);
  }

  function addPage(message: unknown): string | undefined {
    const { tools: some, next } = readToolPage(message);
    for (const tool of some) add(tool);
    // A message without tools may be an error.
    if (next === undefined && some.length > 0) onComplete?.([...tools.values()]);
    return next;
  }

  async function list(ask: (params: object) => Promise<unknown>): Promise<void> {
    let cursor: string | undefined;
    for (let page = 0; page < limits.listPages; page += 1) {
      cursor = addPage(await ask(cursor === undefined ? {} : { cursor }));
      if (cursor === undefined) return;
    }
  }

  return {
    get size() {
      return characters;
    },
    addPage: (message) => void addPage(message),
    forget() {
      tools.clear();
      characters = 0;
    },
    async find(name, ask) {
      if (!tools.has(name)) {
        listing ??= withTimeout(list(ask)).finally(() => {
          listing = undefined;
        });
        await listing;
      }
      return tools.get(name);
    },
  };
}

/** Lists are kept per caller, and anybody can pose as a thousand callers: schemas and descriptions would fill the memory. */
function pickHints({ name, annotations }: ListedTool): ListedTool {
  const { readOnlyHint, idempotentHint } = annotations ?? {};
  return {
    name,
    annotations: { readOnlyHint: readOnlyHint === true, idempotentHint: idempotentHint === true },
  };
}

function withTimeout(work: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, listTimeoutMs);
  work.then(resolve, () => resolve());
  return promise.finally(() => clearTimeout(timer));
}
