// Where a trace is kept: as a note in the history of the record, never in a key.

import type { Records } from '../semel/index.ts';

/** Only ours is read: other programs may annotate records too. */
export const noteField = 'traceparent';

/** As W3C Trace Context writes it, in the only version there is. */
export function isTraceparent(text: unknown): text is string {
  return (
    typeof text === 'string' && /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/.test(text)
  );
}

/** Of the span that did the work. */
export async function findTraceparent(
  records: Pick<Records, 'history'>,
  key: string,
  generation: number,
): Promise<string | undefined> {
  const history = await records.history(key);
  const note = history.findLast(
    (event) => event.type === 'noted' && event.generation === generation && noteField in event.detail,
  );
  const found = note?.detail[noteField];
  return isTraceparent(found) ? found : undefined;
}
