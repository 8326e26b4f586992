// What we depend on in the frameworks, fact by fact: each has a test whose name starts with its number, or a reason why not.

export interface Fact {
  readonly number: string;
  readonly fact: string;
  /** Why there is no test. */
  readonly absent?: string;
}

export const facts: readonly Fact[] = [
  {
    number: '1.1',
    fact: 'AI SDK: a tool is not told its name, its step or the chat: its place in the set names it',
  },
  {
    number: '1.2',
    fact: 'AI SDK: only execute is the place to guard; args may have been repaired before it',
  },
  {
    number: '1.3',
    fact: 'AI SDK: the SDK retries the model only; who makes the whole call again runs tools again',
  },
  { number: '1.4', fact: 'AI SDK: approval and other fields must survive the guard' },
  {
    number: '1.5',
    fact: 'AI SDK: generators, values that JSON changes, toModelOutput, tools without execute, `this`',
  },
  {
    number: '1.6',
    fact: 'AI SDK: the workflow agent does not promise that an interrupted step runs once',
    absent: 'a sentence of its documentation; its runtime is a hosted service',
  },
  { number: '2.1', fact: 'MCP: the protocol has no identity that survives a retry' },
  { number: '2.2', fact: 'MCP: where a key of the caller is looked for, and where not' },
  { number: '2.3', fact: 'MCP: a proxy passes on all but calls; closing a stream, a 401, a list, stderr' },
  { number: '2.4', fact: 'MCP: with an output schema an error must be marked as one' },
  { number: '2.5', fact: 'MCP: questions to the user are inside the claim, or rounds of their own' },
  { number: '2.6', fact: 'MCP: duplicates that clients have made' },
  { number: '2.7', fact: 'MCP: real clients and servers run offline' },
  {
    number: '3.1',
    fact: 'OpenAI Agents: the callId survives a resumed state; a tool is told no run, turn or conversation',
  },
  {
    number: '3.2',
    fact: 'OpenAI Agents: a finished tool is guarded by its invoke; approvals, guardrails and hooks stay',
  },
  {
    number: '3.3',
    fact: 'OpenAI Agents: errors become invitations, timeouts leave the tool running, outputs are text',
  },
  { number: '3.4', fact: 'OpenAI Agents: a run that fails after its tool is made again as a whole' },
  { number: '4.1', fact: 'LangChain: ids survive resume and replay; middleware does not see all of them' },
  { number: '4.2', fact: 'LangGraph: after a crash only what was under way runs again' },
  { number: '4.3', fact: 'LangChain: a message is made with the present id; a Command is never stored' },
  {
    number: '4.4',
    fact: 'LangChain: interrupts pass through; the order of middleware decides what a retry repeats',
  },
  { number: '5.1', fact: 'Anthropic: a tool of the runner is guarded by its run' },
  { number: '5.2', fact: 'Anthropic: a result is text or blocks' },
  { number: '5.3', fact: 'Anthropic: tools may start while the reply streams' },
  { number: '5.4', fact: 'Anthropic: a session brings the same event again after it reconnects' },
  { number: '5.5', fact: 'Anthropic: in a loop of one’s own the id of a tool use is no key' },
  { number: '5.6', fact: 'Anthropic: what is thrown reaches the model as a bare message' },
  {
    number: '5.7',
    fact: 'Claude Agent SDK: hooks can deny a call, and cannot supply a result',
    absent:
      'it ships a native program of a gigabyte, and does not run offline; its MCP tools can go through the proxy',
  },
  {
    number: '5.8',
    fact: 'Mastra: a tool is an instance with its own execute',
    absent: 'no adapter for it yet',
  },
  { number: '5.9', fact: 'Genkit: tool middleware may answer for a tool', absent: 'no adapter for it yet' },
];
