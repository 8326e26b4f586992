// Internal to the adapters: where the warnings of a tool's semel go. A framework shows what a tool answers to a model
// alone, so a mistake of the program has to be said elsewhere too.

/** By name, so that a copy of semel that was loaded twice still finds it. */
export const warningKey: unique symbol = Symbol.for('semel.warning') as never;

/** Says it once. */
type ToolWarning = (message: string) => void;

export function warningOf(tool: object): ToolWarning | undefined {
  return (tool as { [warningKey]?: ToolWarning })[warningKey];
}
