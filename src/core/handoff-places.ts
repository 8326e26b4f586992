// Where a hand-off is put on its way to another process. Its writer and its reader must use the same place.

export const handoffHeader = 'Semel-Context';
/** In `_meta` of a request of MCP. */
export const handoffMeta = 'dev.semel/context';
export const handoffVariable = 'SEMEL_CONTEXT';
