// One line per command, under the headings of the help. Data only, so that the overview loads no command.

export const summaries = {
  run: { group: 'Guard', line: 'guard a job: never two at a time, once per slot' },
  once: { group: 'Guard', line: 'guard one effect: done once, output remembered' },
  step: { group: 'Guard', line: 'inside a run: a durable step, output kept for the next attempt' },
  pick: { group: 'Guard', line: 'inside a run: a choice that is the same in every attempt of the slot' },
  recent: { group: 'Guard', line: 'recent work, for a prompt' },
  seed: { group: 'Guard', line: 'slot, date, seed, picks and recent work of this run' },
  mcp: { group: 'Guard', line: 'guard the tools of any MCP server, for any client' },
  serve: { group: 'Guard', line: 'the ledger over HTTP, for programs in any language' },
  policy: { group: 'Guard', line: 'create or check a policy file for semel mcp' },
  ls: { group: 'See', line: 'list records' },
  show: { group: 'See', line: 'show one record: attempts, timeline, evidence' },
  doubt: { group: 'See', line: 'list what is in doubt and needs a decision' },
  outbox: { group: 'See', line: 'see what is staged, and decide what is dead or in doubt' },
  stats: { group: 'See', line: 'count what was executed, replayed and in doubt over time' },
  key: { group: 'See', line: 'derive a key, and explain it' },
  doctor: { group: 'See', line: 'find problems with a ledger and its use' },
  audit: { group: 'See', line: 'find duplicates in logs you already have' },
  resolve: { group: 'Decide', line: 'decide what is in doubt' },
  sweep: { group: 'Decide', line: "settle what is in doubt, using your tools' own verify" },
  retry: { group: 'Decide', line: 'reopen a failure: the next call executes' },
  forget: { group: 'Decide', line: 'expire a record: the next call executes' },
  prune: { group: 'Keep', line: 'remove expired records' },
  export: { group: 'Keep', line: 'print records and their history as JSON lines' },
  import: { group: 'Keep', line: 'read records from JSON lines' },
  store: { group: 'Keep', line: 'check, back up, migrate or move the store' },
  explain: { group: 'Learn', line: 'explain an error code, an exit code, a field or a word' },
  demo: { group: 'Learn', line: 'three incidents, bare and with semel' },
  completion: { group: 'Learn', line: 'shell completion for bash, zsh or fish' },
} as const satisfies Record<string, { readonly group: string; readonly line: string }>;

export type CommandName = keyof typeof summaries;
