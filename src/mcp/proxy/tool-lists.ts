// The tools of an HTTP server, as it lists them to each caller. Anybody can pose as a thousand callers, and lists may be long:
// their total size is bounded, and the oldest list goes first. It is requested again when needed.

import { limits } from '../../core/limits.ts';
import type { ListedTool } from '../protocol/messages.ts';
import { createToolList, type ToolList } from './tool-list.ts';

export interface ToolLists {
  /** The tool as the server lists it to this caller; see `ToolList.find`. */
  find(scope: string, name: string, ask: Parameters<ToolList['find']>[1]): Promise<ListedTool | undefined>;
}

/** A list may change without a notification. */
export const listAgeMs = 60_000;
const maxLists = 1_000;

export function createToolLists(now: () => number = Date.now): ToolLists {
  const lists = new Map<string, { readonly list: ToolList; readonly until: number }>();

  function listFor(scope: string): ToolList {
    const known = lists.get(scope);
    if (known !== undefined && known.until > now()) return known.list;
    const list = createToolList();
    lists.delete(scope);
    lists.set(scope, { list, until: now() + listAgeMs });
    if (lists.size > maxLists) lists.delete(lists.keys().next().value as string);
    return list;
  }

  function dropOldest(): void {
    let kept = 0;
    for (const { list } of lists.values()) kept += list.size;
    for (const [scope, { list }] of lists) {
      if (kept <= limits.listedCharacters) return;
      kept -= list.size;
      lists.delete(scope);
    }
  }

  return {
    async find(scope, name, ask) {
      const list = listFor(scope);
      const before = list.size;
      const tool = await list.find(name, ask);
      if (list.size > before) dropOldest();
      return tool;
    },
  };
}
