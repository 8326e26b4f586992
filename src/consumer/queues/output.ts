// What a queue stores with a message. Whatever it is, it must not turn a message that is done into one that failed.

/** Undefined if the value is not JSON, or is text that Postgres does not store. */
export function toOutput<Value>(value: Value): Value | undefined {
  try {
    return unstorable.test(JSON.stringify(value) ?? '') ? undefined : value;
  } catch {
    return undefined;
  }
}

/** Escaped NULs and lone surrogates; a false alarm costs the value only. */
const unstorable = /\\u(?:0000|d[89a-f])/i;

export function toReason(reason: string): string {
  return reason.toWellFormed().replaceAll('\0', '');
}
