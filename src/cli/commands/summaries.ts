// The commands in one line each, under the headings of the help. Data only: the help of all loads none of them.

export const summaries = {
  run: { group: 'Guard', line: 'guard a job: never two at a time, done once per slot' },
  once: { group: 'Guard', line: 'guard one effect: done once, its output remembered' },
  step: { group: 'Guard', line: 'inside a run: a durable step, its output kept for the next attempt' },
  pick: { group: 'Guard', line: 'inside a run: a choice that every attempt of the slot makes alike' },
  recent: { group: 'Guard', line: 'what was done lately, for a prompt' },
  seed: { group: 'Guard', line: 'slot, date, seed, picks and recent work of this run' },
  mcp: { group: 'Guard', line: 'guard the tools of any MCP server, for any client' },
  policy: { group: 'Guard', line: 'make or check a policy file for semel mcp' },
  ls: { group: 'See', line: 'list records' },
  show: { group: 'See', line: 'one record: attempts, timeline, evidence' },
  doubt: { group: 'See', line: 'what is in doubt and needs a decision' },
  stats: { group: 'See', line: 'executed, replayed and in doubt over time' },
  key: { group: 'See', line: 'derive a key, and explain it' },
  doctor: { group: 'See', line: 'find what is wrong with a ledger and its use' },
  audit: { group: 'See', line: 'find duplicates in logs you already have' },
  resolve: { group: 'Decide', line: 'decide about what is in doubt' },
  retry: { group: 'Decide', line: 'reopen a failure: the next call executes' },
  forget: { group: 'Decide', line: "end a record's window: the next call executes" },
  prune: { group: 'Keep', line: 'remove what has expired' },
  export: { group: 'Keep', line: 'print records and their history as JSON lines' },
  import: { group: 'Keep', line: 'read records from JSON lines' },
  store: { group: 'Keep', line: 'check, back up, migrate or move what keeps the records' },
  demo: { group: 'Learn', line: 'three incidents, bare and with semel' },
  completion: { group: 'Learn', line: 'completion for bash, zsh or fish' },
} as const satisfies Record<string, { readonly group: string; readonly line: string }>;

export type CommandName = keyof typeof summaries;
