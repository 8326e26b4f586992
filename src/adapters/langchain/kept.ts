// What the ledger keeps of a result. A plain value is kept as it is; of a message what does not belong to its call; of a
// Command nothing, since it changes the graph that it was made in.

/** A result as a ToolMessage has it. */
export interface Said {
  readonly content: unknown;
  readonly artifact?: unknown;
  readonly status?: unknown;
}

interface Kept extends Said {
  readonly langchain: 'message' | 'command';
}

export function keep(output: unknown): unknown {
  if (!isDirect(output)) return output;
  const { type, content, artifact, status } = output as unknown as Said & { type?: unknown };
  if (type !== 'tool') return { langchain: 'command', content: commandIsGone } satisfies Kept;
  return {
    langchain: 'message',
    content,
    ...(artifact === undefined ? {} : { artifact }),
    ...(status === undefined ? {} : { status }),
  } satisfies Kept;
}

export function saidOf(value: unknown, isPair: boolean): Said {
  if (isKept(value)) {
    const { langchain: _, ...said } = value;
    return said;
  }
  return isPair && Array.isArray(value) ? { content: value[0], artifact: value[1] } : { content: value };
}

const commandIsGone =
  'What it changed in the state is in the state that it was done in, and is not changed again.';

/** LangChain hands a ToolMessage and a Command on as they are. */
function isDirect(output: unknown): output is object {
  return (
    typeof output === 'object' &&
    output !== null &&
    'lc_direct_tool_output' in output &&
    output.lc_direct_tool_output === true
  );
}

function isKept(value: unknown): value is Kept {
  const { langchain } = (value ?? {}) as Partial<Kept>;
  return langchain === 'message' || langchain === 'command';
}
