// The door of semel/testing: what users and the authors of stores test with.

export {
  type AdapterCase,
  type AdapterHarness,
  type AgentReport,
  type AgentRun,
  adapterContract,
  contractPolicies,
  type Effects,
  type Means,
  type Script,
  type ScriptedCall,
  whyAbsent,
} from './adapter-contract/index.ts';
export {
  type CheckedRecord,
  check as checkLogs,
  type EffectEntry,
  type Effort,
  effortOf,
  formatViolation,
  type Invariant,
  invariantNames,
  type Logs,
  type Policy,
  parseLines,
  shortfalls,
  type Told,
  type Violation,
  type WorkEntry,
} from './checker/index.ts';
export {
  type Conduct,
  conducts,
  type EffectServer,
  type EffectServerOptions,
  type KeyMemory,
  type LandedEffect,
  type SaidOfItself,
  senderHeaders,
  startEffectServer,
  type Target,
} from './effect-server/index.ts';
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
