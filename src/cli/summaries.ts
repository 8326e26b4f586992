// The commands in one line each, under the headings of the help. Data only: the help of all loads none of them.

export const summaries = {
  doubt: { group: 'See', line: 'what is in doubt and needs a decision' },
  doctor: { group: 'See', line: 'find what is wrong with a ledger and its use' },
  resolve: { group: 'Decide', line: 'decide about what is in doubt' },
  demo: { group: 'Learn', line: 'three incidents, bare and with semel' },
  completion: { group: 'Learn', line: 'completion for bash, zsh or fish' },
} as const satisfies Record<string, { readonly group: string; readonly line: string }>;

export type CommandName = keyof typeof summaries;
