// Whether a Redis may keep a ledger. What it cannot promise is refused in a sentence, before anything is claimed; so is
// what cannot be found out.

import type { Clock } from '../../core/clock.ts';
import { isSemelError, SemelError } from '../../core/errors.ts';
import type { Swap } from '../../store/remote/backend.ts';
import type { Connection, Node, Reply } from './client.ts';

export interface OpenOptions {
  readonly acceptLoss: boolean;
  readonly where: string;
}

export interface ServerFacts {
  readonly version: string;
  /** A sentence where this server may forget what it has confirmed. */
  readonly forgets: string | undefined;
}

const settings = ['appendfsync', 'no-appendfsync-on-rewrite', 'appendonly', 'maxmemory-policy'];
/** Older ones get no more repairs. */
const oldestVersion = [6, 2] as const;

export async function checkServers(connection: Connection, options: OpenOptions): Promise<ServerFacts> {
  const nodes = await connection.nodes();
  const facts = await Promise.all(nodes.map(factsOf));
  for (const fact of facts) refuse(fact, connection, options);
  const weak = [...new Set(facts.flatMap(weaknesses))];
  if (weak.length > 0 && !options.acceptLoss)
    throw new SemelError(
      'STORE_UNSAFE',
      `Redis at ${options.where} can lose what it has confirmed, or this cannot be ruled out: ${weak.join('; ')}. An effect could be repeated.`,
      {
        next: "Set `appendonly yes`, `appendfsync always` and `maxmemory-policy noeviction`, or accept the loss with `durability: 'accept-loss'`.",
      },
    );
  const version = facts[0]?.info.get('redis_version') ?? 'of an unknown version';
  return { version, forgets: forgetsOf(weak, facts, connection) };
}

interface Facts {
  readonly info: ReadonlyMap<string, string>;
  /** Undefined: the server does not tell. */
  readonly config: ReadonlyMap<string, string> | undefined;
}

async function factsOf(node: Node): Promise<Facts> {
  // Without a word for sections: older servers take only one.
  const [text, config] = await Promise.all([node('info'), configOf(node)]);
  const lines = String(text).matchAll(/^([a-z_0-9]+):(.*?)\r?$/gm);
  return { info: new Map([...lines].map(([, name, value]) => [name as string, value as string])), config };
}

async function configOf(node: Node): Promise<ReadonlyMap<string, string> | undefined> {
  try {
    const pairs = await Promise.all(settings.map((name) => node('config', 'get', name)));
    return new Map(pairs.map((pair) => (pair as readonly Reply[]).map(String) as [string, string]));
  } catch {
    return undefined;
  }
}

function refuse({ info }: Facts, { isCluster }: Connection, { where }: OpenOptions): void {
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

function weaknesses({ info, config }: Facts): string[] {
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

function forgetsOf(
  weak: readonly string[],
  facts: readonly Facts[],
  { isCluster }: Connection,
): string | undefined {
  const hasReplicas = facts.some(({ info }) => Number(info.get('connected_slaves') ?? 0) > 0);
  const sentences = [
    weak.length > 0 && `This ledger can forget after a crash of the server: ${weak.join('; ')}.`,
    hasReplicas &&
      `Redis tells its replicas afterwards: a failover ${isCluster ? 'of a server of the cluster ' : ''}can forget the last moments, and a program that starts after it cannot notice.`,
  ].filter((sentence) => sentence !== false);
  return sentences.length === 0 ? undefined : sentences.join(' ');
}

export interface SettingsWatchOptions {
  /** Throws STORE_UNSAFE where they are too weak. */
  readonly check: () => Promise<unknown>;
  readonly clock: Clock;
}

export interface SettingsWatch {
  /** Throws the refusal where one of these would make a new record. */
  admit(swaps: readonly Swap[]): void;
  refusal(): SemelError | undefined;
}

const everyMs = 10_000;
/** While calls are refused. */
const soonMs = 500;

export function settingsWatch({ check, clock }: SettingsWatchOptions): SettingsWatch {
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
      // A server that does not answer says nothing about its settings, and refuses calls by itself.
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
