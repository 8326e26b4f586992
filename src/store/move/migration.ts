// How the schema of a store becomes the one that this semel knows, for whoever wants to see it before it is done.

export interface Migration {
  /** 0: there is no ledger yet. */
  readonly from: number;
  readonly to: number;
  /** What `run` would do; empty where nothing is to be done. */
  readonly statements: readonly string[];
  run(): Promise<void>;
}
