// Says in one sentence that this Node.js cannot run semel, before anything else fails less clearly.

const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number);
const isSupported =
  major > 24 ||
  (major === 24 && minor >= 15) ||
  (major === 22 && (minor > 22 || (minor === 22 && patch >= 3)));

if (!isSupported) {
  throw new Error(
    `semel needs Node.js 24.15 or newer, or 22.22.3 or newer of 22 (this is ${process.version}): older ones bring an SQLite that can corrupt a ledger.`,
  );
}

export {};
