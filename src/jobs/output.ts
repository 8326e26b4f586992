// What a command printed, as it is stored: as text where it is text, so that people can read the ledger.

export function textOrBytes(bytes: Buffer): string | Uint8Array {
  const text = bytes.toString('utf8');
  const isText = Buffer.from(text, 'utf8').equals(bytes) && !isSwollen(text, bytes);
  return isText ? text : new Uint8Array(bytes);
}

const large = 1_048_576;

/** Control characters take six characters of JSON each: as text it would not fit where it fits as bytes. */
function isSwollen(text: string, { length }: Buffer): boolean {
  return length > large && Buffer.byteLength(JSON.stringify(text)) > 1.5 * length;
}

export function bytesOf(stored: string | Uint8Array): Uint8Array {
  return typeof stored === 'string' ? Buffer.from(stored, 'utf8') : stored;
}
