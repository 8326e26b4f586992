// What a command printed, as it is stored: as text where it is text, so that people can read the ledger.

export function textOrBytes(bytes: Buffer): string | Uint8Array {
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : new Uint8Array(bytes);
}

export function bytesOf(stored: string | Uint8Array): Uint8Array {
  return typeof stored === 'string' ? Buffer.from(stored, 'utf8') : stored;
}
