// Internal to the guards: a tool whose name a stranger made up is let go of, so that such names do not fill the memory.

/** By name, so that a copy of semel that was loaded twice still finds it. */
export const forgetKey: unique symbol = Symbol.for('semel.forget') as never;

/** Its name is free again; calls that were begun go on. */
export function forgetTool(tool: object): void {
  (tool as { [forgetKey]?: () => void })[forgetKey]?.();
}
