// What a test process and its keeper say to each other.

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** User and group it runs as; without, those of the test. */
  readonly owner?: number;
  readonly log: string;
  /** What ends it when nobody cares for it any more. */
  readonly endBy: NodeJS.Signals;
}

export type Order = { readonly order: number } & (
  | { readonly do: 'make-folder'; readonly name: string; readonly owner?: number }
  | { readonly do: 'start'; readonly folder: string; readonly command: Command }
  | { readonly do: 'signal'; readonly pid: number; readonly signal: NodeJS.Signals; readonly all: boolean }
  | { readonly do: 'wait-for-end'; readonly pid: number }
  | { readonly do: 'remove-folder'; readonly folder: string }
);

export type Report =
  | { readonly order: number; readonly folder?: string; readonly pid?: number; readonly error?: string }
  | { readonly ended: number; readonly code: number | null; readonly signal: NodeJS.Signals | null };
