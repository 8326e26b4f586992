// The commands in one line each, under the headings of the help. Data only: the help of all loads none of them.

export const summaries = {
  doubt: { group: 'See', line: 'what is in doubt and needs a decision' },
  stats: { group: 'See', line: 'executed, replayed and in doubt over time' },
  key: { group: 'See', line: 'derive a key, and explain it' },
  audit: { group: 'See', line: 'find duplicates in logs you already have' },
  resolve: { group: 'Decide', line: 'decide about what is in doubt' },
  export: { group: 'Keep', line: 'print records and their history as JSON lines' },
  import: { group: 'Keep', line: 'read records from JSON lines' },
} as const satisfies Record<string, { readonly group: string; readonly line: string }>;

export type CommandName = keyof typeof summaries;
