// What a server made with the MCP SDK answers to arguments that do not fit a tool's schema: the tool has not run.

/** The name is part of it: a tool may quote the answer of another server, which says nothing about what the tool itself did. */
export function isInputRejection(tool: string, words: string): boolean {
  return (
    /^(MCP error -32602: )?Input validation error: Invalid arguments for tool /.test(words) &&
    words.includes(` for tool ${tool}: `)
  );
}
