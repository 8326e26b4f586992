// What a command reads from a file or from standard input: lines, numbered from 1, never more of them in memory than
// one piece of the file. Refuses what is no text.

import { createReadStream, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { usageError } from './usage.ts';

export interface Line {
  readonly number: number;
  /** Undefined: it is longer than any line may be, and was not kept. */
  readonly text: string | undefined;
}

export const maxLineLength = 8 * 1_048_576;

/** `-` is standard input. */
export function openInput(command: string, path: string): Readable {
  if (path === '-') return process.stdin;
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    throw usageError(command, `there is no file ${path}`, 'Name a file, or - for standard input.');
  if (found.isDirectory()) throw usageError(command, `${path} is a folder`, 'Name a file in it.');
  return createReadStream(path, { highWaterMark: 262_144 });
}

/** In batches, since one promise per line would cost more than the line. */
export async function* linesOf(
  command: string,
  source: AsyncIterable<Buffer>,
  maxLength: number = maxLineLength,
): AsyncGenerator<readonly Line[]> {
  const decoder = new StringDecoder('utf8');
  let number = 0;
  let rest = '';
  let isTooLong = false;
  let isFirst = true;

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
    return { number, text: tooLong ? undefined : line.endsWith('\r') ? line.slice(0, -1) : line };
  }

  for await (const chunk of source) {
    if (isFirst) checkText(command, chunk);
    const text = decoder.write(chunk);
    yield take(isFirst ? text.replace(/^\uFEFF/, '') : text);
    isFirst = false;
  }
  rest += decoder.end();
  if (rest !== '' || isTooLong) yield [ended(rest)];
}

function checkText(command: string, start: Buffer): void {
  if (start[0] === 0x1f && start[1] === 0x8b)
    throw usageError(
      command,
      'it is compressed',
      `Unpack it on the way: gunzip -c <file> | semel ${command} -`,
    );
  if (start.subarray(0, 1_024).includes(0))
    throw usageError(command, 'it is no UTF-8 text', 'Convert it: iconv -f utf-16 -t utf-8.');
}
