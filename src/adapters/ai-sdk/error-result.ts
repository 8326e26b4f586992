// What a tool of an MCP client returns where the server says that it failed. Such a tool throws only if no answer came.

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

export function refuseErrorResult(output: unknown): unknown {
  const { isError, content } = (output ?? {}) as { isError?: unknown; content?: unknown };
  if (isError === true && Array.isArray(content)) throw new ErrorResult({ ...(output as object), content });
  return output;
}

function textOf(content: readonly unknown[]): string {
  const texts = content.map((part) => (part as { text?: unknown } | null)?.text);
  return texts.filter((text) => typeof text === 'string').join(' ') || 'The tool answered with an error.';
}
