// What the ledger stores of a result: a plain value as it is, a message without its call id, and of a Command only a note,
// because a Command changes the graph that it was made in.

/** A result as a ToolMessage has it. */
export interface StoredResult {
  readonly content: unknown;
  readonly artifact?: unknown;
  readonly status?: unknown;
}

interface StoredOutput extends StoredResult {
  readonly langchain: 'message' | 'command';
}

/** A tool that returns a message with status `error` has failed, as one that throws: what it did before is unknown. */
export class ToolMessageError extends Error {
  override readonly name = 'ToolMessageError';
  /** What its `artifact` says, for `classify`. */
  readonly artifact: unknown;

  constructor({ content, artifact }: StoredResult) {
    super(textOf(content));
    this.artifact = artifact;
  }
}

export function toStored(output: unknown): unknown {
  if (!isDirectOutput(output)) return output;
  const { type, content, artifact, status } = output as unknown as StoredResult & { type?: unknown };
  if (type === 'tool' && status === 'error') throw new ToolMessageError({ content, artifact });
  if (type !== 'tool') return { langchain: 'command', content: commandNote } satisfies StoredOutput;
  return {
    langchain: 'message',
    content,
    ...(artifact === undefined ? {} : { artifact }),
    ...(status === undefined ? {} : { status }),
  } satisfies StoredOutput;
}

export function toResult(value: unknown, isPair: boolean): StoredResult {
  if (isStoredOutput(value)) {
    const { langchain: _, ...result } = value;
    return result;
  }
  return isPair && Array.isArray(value) ? { content: value[0], artifact: value[1] } : { content: value };
}

const commandNote = 'It changed the state when it ran; the state is not changed again.';

function textOf(content: unknown): string {
  const parts = Array.isArray(content) ? content : [content];
  const texts = parts.map((part) => (typeof part === 'string' ? part : part?.text));
  return texts.filter((text) => typeof text === 'string').join(' ') || 'The tool answered with an error.';
}

/** LangChain hands a ToolMessage and a Command on as they are. */
function isDirectOutput(output: unknown): output is object {
  return (
    typeof output === 'object' &&
    output !== null &&
    'lc_direct_tool_output' in output &&
    output.lc_direct_tool_output === true
  );
}

function isStoredOutput(value: unknown): value is StoredOutput {
  const { langchain } = (value ?? {}) as Partial<StoredOutput>;
  return langchain === 'message' || langchain === 'command';
}
