// What the caller gets back besides the value.

export interface Receipt {
  readonly contract: string;
  readonly key: string;
  /** The record's short name; `<id>@<fence>` is what a verdict names. */
  readonly id: string;
  readonly fence: number;
  readonly generation: number;
  readonly attempt: number;
  /** This call ran the effect. */
  readonly executed: boolean;
  /** The value is that of an earlier execution: nothing was done again. */
  readonly replayed: boolean;
  /** Another execution is under way and `ifBusy` is 'skip'. */
  readonly skipped: boolean;
  /** When the execution that the value comes from was settled. */
  readonly settledAt: Date | undefined;
  /** Content fields whose wording differs from the one that was executed. */
  readonly drift: readonly string[];
  /** The provider's own id for what landed. */
  readonly remoteRef: string | undefined;
  /** Why the value was not stored, so that no replay can return it. */
  readonly omitted: string | undefined;
  /** It ran without the ledger, because the store was down and its class allows that. */
  readonly unguarded: boolean;
  /** A possible second effect was accepted, by `onDoubt: 'rerun'` or by a person. */
  readonly acceptedRepeat: boolean;
  /** The turn was guessed by an adapter. */
  readonly weak: boolean;
  /** It ran in the caller's transaction: it is done once that commits, and never was if it rolls back. */
  readonly uncommitted?: true;
  /** In observe mode: what semel would have done instead of running it. */
  readonly observed: string | undefined;
}
