// Reads a file or standard input (`-`) as text, or as lines numbered from 1, with one chunk in memory at a time. Refuses
// anything that is not text.

import { closeSync, createReadStream, openSync, readSync } from 'node:fs';
import { isSemelError, type SemelError } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import { openRegular } from '../../store/files.ts';
import { usageError } from '../usage.ts';

/** Lenient for logs, which may hold anything; strict for input that is trusted, where no name may silently change. */
export type Decoding = 'strict' | 'lenient';

/** UTF-8, with or without a byte order mark. */
export async function* textOf(
  command: string,
  path: string,
  decoding: Decoding = 'strict',
): AsyncGenerator<string> {
  try {
    const bytes =
      path === '-' ? process.stdin : createReadStream('', { fd: openInput(path), highWaterMark: 262_144 });
    yield* decoded(command, bounded(command, bytes), decoding);
  } catch (error) {
    throw isSemelError(error) ? error : unreadable(command, path, error as NodeJS.ErrnoException);
  }
}

/** Standard input, or the pipe of a shell's `<(command)`: can be read only once. */
export function isStream(path: string): boolean {
  return path === '-' || /^\/(dev|proc\/self)\/(fd\/\d+|stdin)$/.test(path);
}

/** Every input file is opened here. Reading a device or a pipe might never end. */
function openInput(path: string): number {
  return isStream(path) ? openSync(path, 'r') : openRegular(path);
}

/** Refuses input that never ends. */
export async function* bounded(
  command: string,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const most = limits.inputBytes;
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > most) throw usageError(command, `the input has more than ${most} bytes`);
    yield chunk;
  }
}

export async function* decoded(
  command: string,
  source: AsyncIterable<Uint8Array>,
  decoding: Decoding,
): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: decoding === 'strict' });
  let isFirst = true;
  try {
    for await (const chunk of source) {
      if (isFirst) checkText(command, chunk);
      isFirst = false;
      yield decoder.decode(chunk, { stream: true });
    }
    yield decoder.decode();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error;
    throw notText(command);
  }
}

export interface Line {
  readonly number: number;
  /** Includes a trailing carriage return. Undefined: longer than `maxLength`, and not kept. */
  readonly text: string | undefined;
}

/** In batches: one promise per line would cost more than the line. */
export async function* linesOf(
  chunks: AsyncIterable<string>,
  maxLength: number,
): AsyncGenerator<readonly Line[]> {
  let number = 0;
  let rest = '';
  let isTooLong = false;

  function take(text: string): Line[] {
    const pieces = text.split('\n');
    const lines: Line[] = [];
    for (let at = 0; at < pieces.length - 1; at += 1) {
      const line = at === 0 ? rest + (pieces[0] as string) : (pieces[at] as string);
      lines.push(ended(line));
      rest = '';
    }
    rest += pieces.at(-1) as string;
    if (rest.length > maxLength) {
      isTooLong = true;
      rest = '';
    }
    return lines;
  }

  function ended(line: string): Line {
    number += 1;
    const tooLong = isTooLong || line.length > maxLength;
    isTooLong = false;
    return { number, text: tooLong ? undefined : line };
  }

  for await (const chunk of chunks) yield take(chunk);
  if (rest !== '' || isTooLong) yield [ended(rest)];
}

/** A whole small file, synchronously. */
export function smallText(command: string, path: string): string {
  const mostBytes = limits.smallInputBytes;
  const buffer = Buffer.alloc(mostBytes + 1);
  let size = 0;
  try {
    const file = path === '-' ? 0 : openInput(path);
    try {
      for (let read = -1; read !== 0 && size < buffer.length; size += read)
        read = readSync(file, buffer, size, buffer.length - size, null);
    } finally {
      if (file !== 0) closeSync(file);
    }
  } catch (error) {
    throw unreadable(command, path, error as NodeJS.ErrnoException);
  }
  if (size > mostBytes) throw usageError(command, `${nameOf(path)} has more than ${mostBytes} bytes`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, size));
  } catch {
    throw notText(command);
  }
}

function unreadable(command: string, path: string, { code, message }: NodeJS.ErrnoException): SemelError {
  const next = 'Name a file, or - for standard input.';
  if (code === 'ENOENT') return usageError(command, `there is no file ${path}`, next);
  if (code === 'ENOTFILE')
    return usageError(
      command,
      `${path} is not a regular file`,
      'Name a file; for a pipe use standard input: -.',
    );
  if (code === 'EISDIR') return usageError(command, `${path} is a folder`, 'Name a file in it.');
  return usageError(command, `${nameOf(path)} cannot be read (${message})`, next);
}

function nameOf(path: string): string {
  return path === '-' ? 'standard input' : path;
}

function checkText(command: string, start: Uint8Array): void {
  if (start[0] === 0x1f && start[1] === 0x8b)
    throw usageError(
      command,
      'the input is compressed',
      'Unpack it first: gunzip -c <file> | semel …, with - as the file.',
    );
  if (start.subarray(0, 1_024).includes(0)) throw notText(command);
}

function notText(command: string): SemelError {
  return usageError(command, 'the input is not UTF-8 text', 'Convert it: iconv -f <its encoding> -t utf-8.');
}
