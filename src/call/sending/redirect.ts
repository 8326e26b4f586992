// Where a redirect leads, as `fetch` would go there: with the same method and words or as a GET, and without what
// only the first host may know.

/** Undefined: it is no redirect. */
export function followRedirect(response: Response, request: Request): Request | undefined {
  const location = response.headers.get('location');
  if (!redirects.has(response.status) || location === null) return undefined;
  const target = new URL(location, request.url);
  const headers = new Headers(request.headers);
  if (target.origin !== new URL(request.url).origin) for (const name of ofOneHost) headers.delete(name);
  if (!becomesGet(response.status, request.method))
    return new Request(target, new Request(request, { headers }));
  for (const name of ofTheBody) headers.delete(name);
  return new Request(target, { headers });
}

/** A PUT or a DELETE that moved is still one: as a GET it would be answered, and nothing done. */
function becomesGet(status: number, method: string): boolean {
  return status === 303 || ((status === 301 || status === 302) && method === 'POST');
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const ofOneHost = ['authorization', 'proxy-authorization', 'cookie', 'host'];
const ofTheBody = [
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-type',
];
