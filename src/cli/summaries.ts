// The commands in one line each, under the headings of the help. Data only: the help of all loads none of them.

export const summaries = {
  ls: { group: 'See', line: 'list records' },
  show: { group: 'See', line: 'one record: attempts, timeline, evidence' },
  doubt: { group: 'See', line: 'what is in doubt and needs a decision' },
  resolve: { group: 'Decide', line: 'decide about what is in doubt' },
  retry: { group: 'Decide', line: 'reopen a failure: the next call executes' },
  forget: { group: 'Decide', line: "end a record's window: the next call executes" },
  prune: { group: 'Keep', line: 'remove what has expired' },
} as const satisfies Record<string, { readonly group: string; readonly line: string }>;

export type CommandName = keyof typeof summaries;
