// GitHub: by `<!-- ${ctx.mark()} -->` in the body, which no reader sees; a release also by its tag. Lists, not search, whose
// index lags without a bound.

import type { VerifyContext } from '../../core/verification.ts';
import { createRequest, type TokenAccess } from './request.ts';
import {
  type AsFound,
  type AsValue,
  earliest,
  type Found,
  type FromArgs,
  fromArgs,
  type SearchOptions,
  search,
  type Verifier,
} from './search.ts';

/** What this page reads of an issue, a comment, a pull request or a release; there is more in it. */
export interface GitHubItem {
  readonly id: number;
  readonly html_url: string;
  readonly number?: number;
  readonly body?: string | null;
  readonly created_at?: string;
  readonly user?: { readonly login: string } | null;
  readonly author?: { readonly login: string } | null;
  readonly pull_request?: unknown;
  readonly tag_name?: string;
}

interface Answer {
  readonly data: unknown;
  readonly headers: { readonly link?: string | undefined };
}

interface OctokitLike {
  request(route: string, parameters?: Record<string, string | number>): Promise<Answer>;
}

/** Octokit (anything with its `request`), or a token. */
type GitHubAccess = { readonly client: OctokitLike } | TokenAccess;

type GitHubOptions<Args> = GitHubAccess &
  SearchOptions & {
    /** `'owner/name'`, or a function of the args. */
    readonly repo: FromArgs<Args, string>;
    /** Counts only what this login wrote. Anybody may copy a mark that they can read. */
    readonly author?: string;
  };

interface OnIssue<Args> {
  /** The number of the issue or pull request. */
  readonly issue: (args: Args) => number;
}

interface FromBranch<Args> {
  /** `'owner:branch'`: narrows the list. */
  readonly head?: (args: Args) => string;
}

interface AtTag<Args> {
  /** Finds the release by its tag, regardless of its author; without it, by the mark in its body. */
  readonly tag?: (args: Args) => string;
}

/** Finds an issue; `ctx.note(String(number))`. Cannot see an issue that was deleted, or moved to another repository. */
export function verifyGitHubIssue<Args, Value>(
  options: GitHubOptions<Args> & AsValue<GitHubItem, Value>,
): Verifier<Args, Value>;
export function verifyGitHubIssue<Args>(options: GitHubOptions<Args> & AsFound): Verifier<Args, Found>;
export function verifyGitHubIssue(options: GitHubOptions<unknown>) {
  return verifyGitHub(options, () => ({
    list: '/issues',
    one: '/issues',
    query: { state: 'all', sort: 'created', direction: 'desc' },
    canFilterByTime: true,
    isKind: ({ pull_request }) => pull_request == null,
    idOf: numberOf,
  }));
}

/** Finds a comment on an issue or pull request; `ctx.note(String(id))`. Cannot see a deleted one, nor review comments. */
export function verifyGitHubComment<Args, Value>(
  options: GitHubOptions<Args> & OnIssue<Args> & AsValue<GitHubItem, Value>,
): Verifier<Args, Value>;
export function verifyGitHubComment<Args>(
  options: GitHubOptions<Args> & OnIssue<Args> & AsFound,
): Verifier<Args, Found>;
export function verifyGitHubComment(options: GitHubOptions<unknown> & OnIssue<unknown>) {
  return verifyGitHub(options, (args) => ({
    list: `/issues/${options.issue(args)}/comments`,
    one: '/issues/comments',
    query: {},
    canFilterByTime: true,
    idOf: ({ id }) => String(id),
  }));
}

/** Finds a pull request, open or closed; `ctx.note(String(number))`. Cannot see whether it was merged: read it in `value`. */
export function verifyGitHubPullRequest<Args, Value>(
  options: GitHubOptions<Args> & FromBranch<Args> & AsValue<GitHubItem, Value>,
): Verifier<Args, Value>;
export function verifyGitHubPullRequest<Args>(
  options: GitHubOptions<Args> & FromBranch<Args> & AsFound,
): Verifier<Args, Found>;
export function verifyGitHubPullRequest(options: GitHubOptions<unknown> & FromBranch<unknown>) {
  return verifyGitHub(options, (args) => ({
    list: '/pulls',
    one: '/pulls',
    query: {
      state: 'all',
      sort: 'created',
      direction: 'desc',
      ...(options.head === undefined ? {} : { head: options.head(args) }),
    },
    canFilterByTime: false,
    idOf: numberOf,
  }));
}

/** Finds a release; `ctx.note(String(id))`. Cannot see drafts with a token that may not push, nor uploaded assets. */
export function verifyGitHubRelease<Args, Value>(
  options: GitHubOptions<Args> & AtTag<Args> & AsValue<GitHubItem, Value>,
): Verifier<Args, Value>;
export function verifyGitHubRelease<Args>(
  options: GitHubOptions<Args> & AtTag<Args> & AsFound,
): Verifier<Args, Found>;
export function verifyGitHubRelease(options: GitHubOptions<unknown> & AtTag<unknown>) {
  return verifyGitHub(options, (args) => {
    const tag = options.tag?.(args);
    return {
      list: '/releases',
      one: '/releases',
      query: {},
      canFilterByTime: false,
      // A release may be created long before it is published, so the list is not in the order of `created_at`.
      isOrdered: false,
      ...(tag === undefined ? {} : { isOurs: ({ tag_name }: GitHubItem) => tag_name === tag }),
      idOf: ({ id }) => String(id),
    };
  });
}

interface Kind {
  readonly list: string;
  readonly one: string;
  readonly query: Readonly<Record<string, string>>;
  readonly canFilterByTime: boolean;
  /** Newest first. @default true */
  readonly isOrdered?: boolean;
  readonly isKind?: (item: GitHubItem) => boolean;
  /** Instead of by the mark. */
  readonly isOurs?: (item: GitHubItem) => boolean;
  readonly idOf: (item: GitHubItem) => string;
}

const pageSize = 100;

function verifyGitHub<Args>(options: GitHubOptions<Args>, kindOf: (args: Args) => Kind) {
  return (args: Args, ctx: VerifyContext) => {
    const { list, one, query, canFilterByTime, isOrdered = true, isKind, isOurs, idOf } = kindOf(args);
    const mark = ctx.mark(options.part);
    const client: OctokitLike =
      options.client === undefined ? withToken(options as TokenAccess, ctx.signal) : options.client;
    const repo = `/repos/${fromArgs(options.repo, args)}`;
    const since = earliest(ctx);
    const isTooOld = ({ created_at }: GitHubItem) =>
      since !== undefined && created_at !== undefined && Date.parse(created_at) < since.getTime();
    const isBy = ({ user, author }: GitHubItem) =>
      options.author === undefined || (user ?? author)?.login === options.author;
    return search<GitHubItem, never>(
      {
        service: 'GitHub',
        get: async (id) => {
          const { data } = await client.request(`GET ${repo}${one}/${encodeURIComponent(id)}`);
          return data as GitHubItem;
        },
        page: async (cursor = '1') => {
          const { data, headers } = await client.request(`GET ${repo}${list}`, {
            ...query,
            ...(canFilterByTime && since !== undefined ? { since: since.toISOString() } : {}),
            per_page: pageSize,
            page: Number(cursor),
          });
          const items = data as readonly GitHubItem[];
          const last = items.at(-1);
          const isPast = !canFilterByTime && isOrdered && last !== undefined && isTooOld(last);
          // A proxy may drop the header `link`: what is after a full page is asked for regardless.
          const hasNext = !isPast && (items.length >= pageSize || /rel="next"/.test(headers.link ?? ''));
          return { items, next: hasNext ? String(Number(cursor) + 1) : undefined };
        },
        isOurs: (item) =>
          (isKind?.(item) ?? true) && isBy(item) && (isOurs?.(item) ?? item.body?.includes(mark) === true),
        idOf,
        isNumbered: true,
        // Not documented: what was just written may be missing from a list for a moment.
        lag: '1m',
      },
      options,
      ctx,
    );
  };
}

function numberOf({ number }: GitHubItem): string {
  return String(number);
}

function withToken({ token, baseUrl, fetch }: TokenAccess, signal: AbortSignal): OctokitLike {
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'application/vnd.github+json',
    'x-github-api-version': '2022-11-28',
  };
  const request = createRequest({ baseUrl: baseUrl ?? 'https://api.github.com', headers, fetch }, signal);
  return {
    async request(route, query = {}) {
      const { body, headers: received } = await request(route.replace('GET ', ''), { query });
      return { data: body, headers: { link: received.get('link') ?? undefined } };
    },
  };
}
