// A remote store on a service whose only atomic step is a compare-and-set of one value.

export { type CellBackendOptions, cellBackend } from './cell-backend.ts';
export { type CellName, type CellPage, type Cells, metaName, type StoredCell, shortenKey } from './cells.ts';
export { dateClock, dateMarginMs } from './date-clock.ts';
