// landsOnce: a user's own tool, on the user's own store, through everything that repeats calls.

export { landsOnce } from './lands-once.ts';
export type { LandsOnceOptions } from './options.ts';
export { LandsOnceError, type LandsOnceRow, type LandsOnceTable } from './table.ts';
