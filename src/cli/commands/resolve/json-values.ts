// JSON lines, or one JSON array: a value at a time, with the line where it starts. Holds one value.

import type { SemelError } from '../../../core/errors.ts';
import { repeatedName } from '../../../core/key/repeated-name.ts';
import { linesOf } from '../../args/input.ts';
import { usageError } from '../../usage.ts';

interface JsonValue {
  readonly line: number;
  readonly value: unknown;
}

export async function* jsonLines(
  chunks: AsyncIterable<string>,
  mostCharacters: number,
): AsyncGenerator<JsonValue> {
  for await (const batch of linesOf(chunks, mostCharacters)) {
    for (const { number, text } of batch) {
      if (text === undefined) throw tooLong(number, mostCharacters);
      if (text.trim() !== '') yield { line: number, value: parsed(text, number, true) };
    }
  }
}

/** The elements of the text's one array. */
export async function* jsonArray(
  chunks: AsyncIterable<string>,
  mostCharacters: number,
): AsyncGenerator<JsonValue> {
  let line = 1;
  let startLine = 1;
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  let isOver = false;
  let element = '';
  /** After a comma an element must follow. */
  let isDue = false;

  function* endElement(isLast: boolean): Generator<JsonValue> {
    const isEmpty = element.trim() === '';
    if (isEmpty && (!isLast || isDue)) throw malformed(line, 'has a comma without a value');
    if (!isEmpty) yield { line: startLine, value: parsed(element, startLine, false) };
    element = '';
    isDue = !isLast;
  }

  for await (const chunk of chunks) {
    for (const character of chunk) {
      const isSpace = character === ' ' || character === '\t' || character === '\r' || character === '\n';
      if (isOver && !isSpace) throw malformed(line, 'has text after the end of the array');
      if (depth === 0) {
        // The caller has seen the bracket.
        if (character === '[') depth = 1;
      } else if (isText) {
        element += character;
        if (isEscaped) isEscaped = false;
        else if (character === '\\') isEscaped = true;
        else if (character === '"') isText = false;
      } else if (depth === 1 && character === ',') yield* endElement(false);
      else if (depth === 1 && character === ']') {
        yield* endElement(true);
        depth = 0;
        isOver = true;
      } else {
        if (element === '' && !isSpace) startLine = line;
        if (character === '"') isText = true;
        if (character === '[' || character === '{') depth += 1;
        if (character === ']' || character === '}') depth -= 1;
        // An extra bracket would end the wrong array.
        if (depth < 1) throw malformed(line, 'has a closing bracket too many');
        if (element !== '' || !isSpace) element += character;
      }
      if (element.length > mostCharacters) throw tooLong(startLine, mostCharacters);
      if (character === '\n') line += 1;
    }
  }
  if (!isOver) throw malformed(line, 'is the last, and the array has no end');
}

function parsed(text: string, line: number, isLine: boolean): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const next =
      isLine && line === 1
        ? 'Each line must be one JSON object. If an object contains the list, extract it with jq -c ".data[]".'
        : undefined;
    throw malformed(line, 'is not JSON', next);
  }
  // Only the last one would count, and a reader may have seen the first.
  const twice = repeatedName(text);
  if (twice !== undefined) throw malformed(line, `has the name ${JSON.stringify(twice)} twice`);
  return value;
}

function tooLong(line: number, mostCharacters: number): Error {
  return malformed(line, `is longer than ${mostCharacters} characters`);
}

export function malformed(line: number, what: string, next?: string): SemelError {
  return usageError(
    'resolve',
    `line ${line} ${what}`,
    `Nothing was settled. ${next ?? 'Correct the file and try again.'}`,
  );
}
