// The door of semel/testing: what users and the authors of stores test with.

export {
  LandsOnceError,
  type LandsOnceOptions,
  type LandsOnceRow,
  type LandsOnceTable,
  landsOnce,
} from './lands-once/index.ts';
export {
  type ContractCase,
  type Need,
  type StoreHarness,
  storeContract,
  whySkipped,
} from './store-contract/index.ts';
