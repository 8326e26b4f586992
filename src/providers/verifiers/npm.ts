// npm and other registries with its API: the version that was published, distinguished by its integrity or by the
// field `semel` of its package.json.

import { landed, notLanded, unsure } from '../../core/verification.ts';
import { createRequest } from './request.ts';
import { answer, orUndefined, type SearchOptions, type Verifier } from './search.ts';

interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  /** Digest of the tarball, as `npm pack --json` prints it. Without it, package.json must have `"semel": ctx.mark()`. */
  readonly integrity?: string;
}

interface NpmOptions<Args> extends Pick<SearchOptions, 'part' | 'lag'> {
  readonly package: (args: Args) => PublishedPackage;
  /** Address of the registry that it was published to. */
  readonly registry: string;
  /** For private packages. */
  readonly token?: string;
  readonly fetch?: typeof globalThis.fetch;
}

export interface NpmFound {
  readonly name: string;
  readonly version: string;
}

interface Packument {
  readonly versions?: Readonly<
    Record<string, { readonly semel?: unknown; readonly dist?: { readonly integrity?: string } }>
  >;
  readonly time?: Readonly<Record<string, string>>;
}

/**
 * Finds a published version. A registry may serve an old copy for minutes, so "not landed" waits five minutes longer. Cannot
 * see dist-tags, nor a private package without a token: the registry answers 404 for it, as for one that does not exist.
 */
export function verifyNpmPublish<Args>(options: NpmOptions<Args>): Verifier<Args, NpmFound> {
  return (args, ctx) =>
    answer<NpmFound>('The registry', async () => {
      const { registry, token, fetch } = options;
      const { name, version: given, integrity } = options.package(args);
      // As npm publishes it: without what comes before the number, and without build metadata.
      const version = given.replace(/^[=v\s]+/, '').replace(/\+.*$/, '');
      const headers: Record<string, string> = { 'cache-control': 'no-cache' };
      if (token !== undefined) headers.authorization = `Bearer ${token}`;
      const request = createRequest({ baseUrl: registry, headers, fetch }, ctx.signal);
      const reply = await orUndefined(request<Packument>(`/${name.replace('/', '%2f')}`));
      const lag = options.lag ?? '5m';
      if (reply === undefined) return notLanded({ lag });
      const { versions, time } = reply.body;
      if (typeof versions !== 'object' || versions === null)
        return unsure('the registry answered something that is not a package');
      const found = versions[version];
      if (found === undefined) {
        // A version can be published only once, even after it was unpublished.
        return time?.[version] === undefined
          ? notLanded({ lag })
          : unsure(`${name}@${version} was published and is not there any more`);
      }
      const isOurs =
        integrity === undefined
          ? found.semel === ctx.mark(options.part)
          : found.dist?.integrity === integrity;
      return isOurs
        ? landed({ name, version: given }, `${name}@${version}`)
        : unsure(
            `${name}@${version} is there, but not with our ${integrity === undefined ? 'mark' : 'integrity'}`,
          );
    });
}
