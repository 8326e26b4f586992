// Limits the shape of a JSON text (nesting, values, length of numbers) before it is parsed, in one pass over its bytes, and
// notes what to look at after that.
// Parsers recurse, or allocate an object per level.

import { limits } from '../limits.ts';

const [quote, backslash, comma, colon, openList, openObject, closeList, closeObject] = [...'"\\,:[{]}'].map(
  (sign) => sign.charCodeAt(0),
) as [number, number, number, number, number, number, number, number];

/** Parsing it could overflow the stack, or fill the memory with levels. */
export function isTooDeep(text: string | Buffer): boolean {
  if (text.length <= limits.jsonDepth) return false;
  return shapeProblem(typeof text === 'string' ? Buffer.from(text) : text, { isAnswer: true }) !== undefined;
}

export interface JsonShape {
  /** The limit that it exceeds, as a sentence; undefined: it may be parsed. */
  readonly problem: string | undefined;
  /** How many members its objects have, if it is JSON. */
  readonly members: number;
  /** A number in it may have more digits than a double can hold, or an exponent. */
  readonly mayRound: boolean;
}

export function shapeProblem(bytes: Buffer, options?: { readonly isAnswer?: boolean }): string | undefined {
  return readShape(bytes, options).problem;
}

/** It need not be JSON. An answer of the operator's own server may have long numbers, which are never converted, and many values. */
export function readShape(bytes: Buffer, { isAnswer = false } = {}): JsonShape {
  let depth = 0;
  let values = 0;
  let number = 0;
  let members = 0;
  let mayRound = false;
  const refuse = (problem: string) => ({ problem, members, mayRound });
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === quote) {
      number = 0;
      at = endOfText(bytes, at);
    } else if (byte === openList || byte === openObject) {
      number = 0;
      depth += 1;
      if (depth > limits.jsonDepth) return refuse(`It is nested deeper than ${limits.jsonDepth} levels.`);
    } else if (byte === closeList || byte === closeObject) {
      number = 0;
      depth -= 1;
    } else if (isOfNumber(byte)) {
      number += 1;
      if (number > exactDigits || (number > 1 && (byte | 32) === exponent)) mayRound = true;
      if (number > limits.numberCharacters && !isAnswer)
        return refuse(`A number in it has more than ${limits.numberCharacters} characters.`);
    } else {
      number = 0;
      if (byte === colon) members += 1;
    }
    if (byte !== comma && byte !== openList && byte !== openObject) continue;
    values += 1;
    if (values > limits.jsonValues && !isAnswer)
      return refuse(`It has more than ${limits.jsonValues} members and elements.`);
  }
  return { problem: undefined, members, mayRound };
}

/** A number of so many digits is the same as a double. */
const exactDigits = 15;
const exponent = 'e'.charCodeAt(0);

/** Digits, signs, the point and the exponent. */
function isOfNumber(byte: number): boolean {
  return (byte >= 48 && byte <= 57) || byte === 43 || byte === 45 || byte === 46 || (byte | 32) === exponent;
}

/** The index of the closing quote, or the end of the bytes. */
function endOfText(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at += 1) {
    if (bytes[at] === backslash) at += 1;
    else if (bytes[at] === quote) return at;
  }
  return bytes.length;
}
