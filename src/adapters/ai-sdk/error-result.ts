// What a tool of an MCP client returns where the server says that it failed. Such a tool throws only if no answer came.

import { NotLanded } from '../../core/signals.ts';
import { isInputRejection } from '../../guard/index.ts';

/** What the tool did before it failed is unknown, as with one that throws. */
export class ErrorResult extends Error {
  override readonly name = 'ErrorResult';
  /** What the tool returned, for `classify`. */
  readonly result: unknown;

  constructor(result: { readonly content: readonly unknown[] }) {
    super(textOf(result.content));
    this.result = result;
  }
}

export function refuseErrorResult(tool: string, output: unknown): unknown {
  const { isError, content } = (output ?? {}) as { isError?: unknown; content?: unknown };
  if (isError !== true || !Array.isArray(content)) return output;
  const error = new ErrorResult({ ...(output as object), content });
  // Otherwise a model that corrects its arguments would be told that the call may have landed.
  throw isInputRejection(tool, error.message) ? new NotLanded(error.message) : error;
}

function textOf(content: readonly unknown[]): string {
  const texts = content.map((part) => (part as { text?: unknown } | null)?.text);
  return texts.filter((text) => typeof text === 'string').join(' ') || 'The tool answered with an error.';
}
