// What a command reads from a file or from standard input (`-`): text, or its lines, numbered from 1, never more of them
// in memory than one piece of the file. Refuses what is no text.

import { closeSync, createReadStream, openSync, readSync } from 'node:fs';
import { isSemelError, type SemelError } from '../../core/errors.ts';
import { limits } from '../../core/limits.ts';
import { openRegular } from '../../store/files.ts';
import { usageError } from '../usage.ts';

/** A log may hold anything; of what is believed, no name may turn into another one without a word. */
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

/** True for standard input, and for the pipe that a shell makes of `<(command)`: read once, and never again. */
export function isStream(path: string): boolean {
  return path === '-' || /^\/(dev|proc\/self)\/(fd\/\d+|stdin)$/.test(path);
}

/** Every file that a command reads is opened here. Others could be waited for, or read, without end. */
function openInput(path: string): number {
  return isStream(path) ? openSync(path, 'r') : openRegular(path);
}

/** What never ends is not read for ever. */
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
    throw noText(command);
  }
}

export interface Line {
  readonly number: number;
  /** With a carriage return at its end, if there is one. Undefined: it is longer than `maxLength`, and was not kept. */
  readonly text: string | undefined;
}

/** In batches, since one promise per line would cost more than the line. */
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

/** The whole of a small file, at once: what it is for begins after it. */
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
    throw noText(command);
  }
}

function unreadable(command: string, path: string, { code, message }: NodeJS.ErrnoException): SemelError {
  const next = 'Name a file, or - for standard input.';
  if (code === 'ENOENT') return usageError(command, `there is no file ${path}`, next);
  if (code === 'ENOTFILE')
    return usageError(
      command,
      `${path} is not a regular file`,
      'Name a file; a pipe goes to standard input: -.',
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
      'it is compressed',
      'Unpack it on the way: gunzip -c <file> | semel …, with - as the file.',
    );
  if (start.subarray(0, 1_024).includes(0)) throw noText(command);
}

function noText(command: string): SemelError {
  return usageError(command, 'it is no UTF-8 text', 'Convert it: iconv -f <its encoding> -t utf-8.');
}
