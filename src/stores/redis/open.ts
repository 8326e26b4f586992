// Checks that a Redis server keeps what it confirms, at opening and while it is in use. Refuses servers that do not, or that
// do not reveal their settings.

import type { Clock } from '../../core/clock.ts';
import { isSemelError, SemelError } from '../../core/errors.ts';
import type { Swap } from '../../store/remote/backend.ts';
import type { Connection, Node, Reply } from './client.ts';

interface OpenOptions {
  readonly acceptLoss: boolean;
  readonly where: string;
}

export interface ServerFacts {
  readonly version: string;
  /** A sentence if this server can lose confirmed writes. */
  readonly forgets: string | undefined;
}

const settings = ['appendfsync', 'no-appendfsync-on-rewrite', 'appendonly', 'maxmemory-policy'];
/** Older versions get no more fixes. */
const oldestVersion = [6, 2] as const;

export async function checkServers(connection: Connection, options: OpenOptions): Promise<ServerFacts> {
  const nodes = await connection.nodes();
  const facts = await Promise.all(nodes.map(readFacts));
  for (const fact of facts) refuseUnfit(fact, connection, options);
  const weak = [...new Set(facts.flatMap(findWeaknesses))];
  if (weak.length > 0 && !options.acceptLoss)
    throw new SemelError(
      'STORE_UNSAFE',
      `Redis at ${options.where} can lose confirmed writes, or this cannot be ruled out: ${weak.join('; ')}. An effect could be repeated.`,
      {
        next: "Set `appendonly yes`, `appendfsync always` and `maxmemory-policy noeviction`, or accept the loss, as in development: `?durability=accept-loss` in the URL, or the option `durability: 'accept-loss'`.",
      },
    );
  const version = facts[0]?.info.get('redis_version') ?? 'of an unknown version';
  return { version, forgets: describeForgetting(weak, facts, connection) };
}

interface Facts {
  readonly info: ReadonlyMap<string, string>;
  /** Undefined if the server refuses CONFIG GET. */
  readonly config: ReadonlyMap<string, string> | undefined;
}

async function readFacts(node: Node): Promise<Facts> {
  // All sections: older servers accept only one section name.
  const [text, config] = await Promise.all([node('info'), readConfig(node)]);
  const lines = String(text).matchAll(/^([a-z_0-9]+):(.*?)\r?$/gm);
  return { info: new Map([...lines].map(([, name, value]) => [name as string, value as string])), config };
}

async function readConfig(node: Node): Promise<ReadonlyMap<string, string> | undefined> {
  try {
    const pairs = await Promise.all(settings.map((name) => node('config', 'get', name)));
    return new Map(pairs.map((pair) => (pair as readonly Reply[]).map(String) as [string, string]));
  } catch {
    return undefined;
  }
}

function refuseUnfit({ info }: Facts, { isCluster }: Connection, { where }: OpenOptions): void {
  const unsafe = (happened: string, next: string) => new SemelError('STORE_UNSAFE', happened, { next });
  const version = info.get('redis_version') ?? '';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldestVersion;
  if (version !== '' && (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)))
    throw unsafe(`Redis at ${where} is version ${version}, which is too old.`, 'Use version 6.2 or newer.');
  if (info.get('role') === 'slave')
    throw unsafe(`Redis at ${where} is a replica.`, 'Point semel at the primary.');
  if (!isCluster && info.get('cluster_enabled') === '1')
    throw unsafe(
      `Redis at ${where} is a cluster, and this client knows only one of its servers.`,
      'Pass a cluster client: `new Redis.Cluster(…)` or `createCluster(…)`.',
    );
}

function findWeaknesses({ info, config }: Facts): string[] {
  const policy = config?.get('maxmemory-policy') ?? info.get('maxmemory_policy');
  const isAppending = info.has('aof_enabled')
    ? info.get('aof_enabled') === '1'
    : config?.get('appendonly') === 'yes';
  const sync = config?.get('appendfsync');
  return [
    policy === undefined && 'its eviction policy cannot be read',
    policy !== undefined && policy !== 'noeviction' && `maxmemory-policy is ${policy}, which evicts records`,
    !isAppending && 'appendonly is off',
    isAppending && sync === undefined && 'appendfsync cannot be read (CONFIG GET is not allowed)',
    isAppending &&
      sync !== undefined &&
      sync !== 'always' &&
      `appendfsync is ${sync}, which loses the last moments`,
    isAppending && config?.get('no-appendfsync-on-rewrite') === 'yes' && 'no-appendfsync-on-rewrite is on',
  ].filter((reason) => reason !== false);
}

function describeForgetting(
  weak: readonly string[],
  facts: readonly Facts[],
  { isCluster }: Connection,
): string | undefined {
  const hasReplicas = facts.some(({ info }) => Number(info.get('connected_slaves') ?? 0) > 0);
  const sentences = [
    weak.length > 0 && `This ledger can lose writes if the server crashes: ${weak.join('; ')}.`,
    hasReplicas &&
      `Redis replicates asynchronously: a failover ${isCluster ? 'of a server of the cluster ' : ''}can lose the last writes, and a program that starts after it cannot notice.`,
  ].filter((sentence) => sentence !== false);
  return sentences.length === 0 ? undefined : sentences.join(' ');
}

interface SettingsWatchOptions {
  /** Throws STORE_UNSAFE if the settings are too weak. */
  readonly check: () => Promise<unknown>;
  readonly clock: Clock;
}

interface SettingsWatch {
  /** Throws the refusal if one of these would create a record. */
  admit(swaps: readonly Swap[]): void;
  refusal(): SemelError | undefined;
}

const everyMs = 10_000;
/** The interval while calls are refused. */
const soonMs = 500;

export function watchSettings({ check, clock }: SettingsWatchOptions): SettingsWatch {
  let refusal: SemelError | undefined;
  let checkedAt = clock.mono();
  let isChecking = false;

  return {
    admit(swaps) {
      const sinceMs = clock.mono() - checkedAt;
      if (!isChecking && sinceMs >= (refusal === undefined ? everyMs : soonMs)) void checkAgain();
      if (refusal !== undefined && swaps.some(makesRecord)) throw refusal;
    },
    refusal: () => refusal,
  };

  async function checkAgain(): Promise<void> {
    isChecking = true;
    try {
      await check();
      refusal = undefined;
    } catch (error) {
      // A server that does not answer fails the calls anyway.
      if (isSemelError(error) && error.code === 'STORE_UNSAFE') refusal = error;
    } finally {
      checkedAt = clock.mono();
      isChecking = false;
    }
  }
}

function makesRecord({ write }: Swap): boolean {
  return write !== undefined && write.before === undefined && write.row !== undefined;
}
