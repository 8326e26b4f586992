// Which Node.js can run semel. Alone in its file, because it must load on any.

/** A sentence where it cannot; undefined where it can. */
export function describeUnsupportedNode(version: string): string | undefined {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const isSupported =
    major > 24 ||
    (major === 24 && minor >= 15) ||
    (major === 22 && (minor > 22 || (minor === 22 && patch >= 3)));
  if (isSupported) return undefined;
  return `semel needs Node.js 24.15 or newer, or Node.js 22 from 22.22.3 on; this is ${version}. Older versions have a built-in SQLite that can corrupt a ledger.`;
}
