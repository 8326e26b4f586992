// What every view gets.

import type { Me } from '../answers.ts';

export interface ViewProps {
  readonly namespace: string;
  readonly params: Readonly<Record<string, string>>;
  readonly me: Me;
  /** The token may decide: others see no buttons. */
  readonly mayDecide: boolean;
}
