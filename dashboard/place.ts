// The address is the state: every view can be linked to, and the browser's own back and forward work.

import { useEffect, useState } from 'preact/hooks';
import { addressOf } from './api.ts';

export interface Place {
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
}

function here(): Place {
  return { path: location.pathname, params: Object.fromEntries(new URLSearchParams(location.search)) };
}

const moved = 'semel-moved';

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const follow = () => setPlace(here());
    addEventListener('popstate', follow);
    addEventListener(moved, follow);
    return () => {
      removeEventListener('popstate', follow);
      removeEventListener(moved, follow);
    };
  }, []);
  return place;
}

export function go(address: string, isReplaced = false): void {
  if (isReplaced) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  dispatchEvent(new Event(moved));
  if (!isReplaced) scrollTo(0, 0);
}

/** In this namespace. */
export function linkTo(
  path: string,
  namespace: string,
  params: Record<string, string | undefined> = {},
): string {
  return addressOf(path, { ...params, ns: namespace });
}

/** Links of this page change the view; with a modifier they are the browser's. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey)
    return;
  const link = (event.target as Element | null)?.closest?.('a');
  if (link == null || link.target !== '' || link.origin !== location.origin) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
