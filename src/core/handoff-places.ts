// Where a hand-off stands on its way to another process. Whoever writes it and whoever reads it must mean the same place.

export const handoffHeader = 'Semel-Context';
/** In `_meta` of a request of MCP. */
export const handoffMeta = 'dev.semel/context';
export const handoffVariable = 'SEMEL_CONTEXT';
