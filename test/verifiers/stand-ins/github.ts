// GitHub's lists: pages by number with a Link header, `since` by the last update, pull requests among the issues.

import {
  verifyGitHubComment,
  verifyGitHubIssue,
  verifyGitHubPullRequest,
  verifyGitHubRelease,
} from '../../../src/providers/verifiers/index.ts';
import { bearer, notFound, post, type Shape, type VerifierCase } from './stand-in.ts';

interface Paths {
  readonly list: string;
  readonly one: string;
  /** Comments are listed oldest first. */
  readonly isAscending?: boolean;
  readonly hasSince?: boolean;
  readonly id: 'id' | 'number';
}

function shape({ list, one, isAscending = false, hasSince = false, id }: Paths): Shape {
  const shownId = (shown: Record<string, unknown>) => String(shown[id]);
  return {
    isAllowed: bearer,
    isCreate: (asked) => asked.method === 'POST',
    create: ({ body }, nth, at) => ({
      id: 9_000 + nth,
      number: nth,
      html_url: `https://example.com/${nth}`,
      created_at: new Date(at).toISOString(),
      user: { login: 'bot' },
      ...(JSON.parse(body || '{}') as object),
    }),
    idOf: shownId,
    read({ path, query }, things, all) {
      if (path !== list) {
        const found = all.find(({ shown }) => path === `${one}/${shownId(shown)}`);
        return found === undefined ? notFound : { body: found.shown };
      }
      const since = hasSince ? Date.parse(query.get('since') ?? '1970-01-01') : 0;
      const listed = things.filter(({ at }) => at >= since).map(({ shown }) => shown);
      if (!isAscending) listed.reverse();
      const [size, page] = [Number(query.get('per_page') ?? 30), Number(query.get('page') ?? 1)];
      const items = listed.slice((page - 1) * size, page * size);
      const hasNext = listed.length > page * size;
      return {
        body: items,
        ...(hasNext
          ? { headers: { link: `<https://api.example.com${list}?page=${page + 1}>; rel="next"` } }
          : {}),
      };
    },
  };
}

const repo = 'ann/shop';
const hidden = (mark: string) => ({ body: `It is done.\n\n<!-- ${mark} -->` });
const common = { lagMs: 60_000, isPaged: true } as const;

export const gitHubCases: readonly VerifierCase[] = [
  {
    ...common,
    name: 'GitHub issue',
    shape: shape({
      list: `/repos/${repo}/issues`,
      one: `/repos/${repo}/issues`,
      hasSince: true,
      id: 'number',
    }),
    request: (mark) => post(`/repos/${repo}/issues`, { title: 'It', ...hidden(mark) }),
    verifier: ({ url }, { token = '', ...more }) =>
      verifyGitHubIssue({ token, baseUrl: url, repo, author: 'bot', ...more }),
  },
  {
    ...common,
    name: 'GitHub comment',
    shape: shape({
      list: `/repos/${repo}/issues/7/comments`,
      one: `/repos/${repo}/issues/comments`,
      hasSince: true,
      isAscending: true,
      id: 'id',
    }),
    request: (mark) => post(`/repos/${repo}/issues/7/comments`, hidden(mark)),
    verifier: ({ url }, { token = '', ...more }) =>
      verifyGitHubComment({
        token,
        baseUrl: url,
        repo: () => repo,
        issue: ({ order }: { order: number }) => order,
        ...more,
      }),
  },
  {
    ...common,
    name: 'GitHub pull request',
    shape: shape({ list: `/repos/${repo}/pulls`, one: `/repos/${repo}/pulls`, id: 'number' }),
    request: (mark) =>
      post(`/repos/${repo}/pulls`, { title: 'It', head: 'x', base: 'main', ...hidden(mark) }),
    verifier: ({ url }, { token = '', ...more }) =>
      verifyGitHubPullRequest({ token, baseUrl: url, repo, head: () => 'ann:x', ...more }),
  },
  {
    ...common,
    name: 'GitHub release',
    shape: shape({ list: `/repos/${repo}/releases`, one: `/repos/${repo}/releases`, id: 'id' }),
    request: (mark) => post(`/repos/${repo}/releases`, { tag_name: 'v1.2.3', ...hidden(mark) }),
    verifier: ({ url }, { token = '', ...more }) =>
      verifyGitHubRelease({ token, baseUrl: url, repo, ...more }),
  },
];
