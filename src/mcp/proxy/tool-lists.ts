// The tools of a server over HTTP, as it lists them to each caller. Anybody can be a thousand callers, and a list may be
// long: what is kept of all of them together is bounded, and the oldest goes first. It is asked for again when needed.

import { limits } from '../../core/limits.ts';
import type { ListedTool } from '../protocol/messages.ts';
import { type ToolList, toolList } from './tool-list.ts';

export interface ToolLists {
  /** As the server lists it to this caller; see `ToolList.find`. */
  find(scope: string, name: string, ask: Parameters<ToolList['find']>[1]): Promise<ListedTool | undefined>;
}

/** A list may change without our hearing of it. */
export const listAgeMs = 60_000;
const mostLists = 1_000;

export function toolLists(now: () => number = Date.now): ToolLists {
  const lists = new Map<string, { readonly list: ToolList; readonly until: number }>();

  function listOf(scope: string): ToolList {
    const known = lists.get(scope);
    if (known !== undefined && known.until > now()) return known.list;
    const list = toolList();
    lists.delete(scope);
    lists.set(scope, { list, until: now() + listAgeMs });
    if (lists.size > mostLists) lists.delete(lists.keys().next().value as string);
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
      const list = listOf(scope);
      const before = list.size;
      const tool = await list.find(name, ask);
      if (list.size > before) dropOldest();
      return tool;
    },
  };
}
