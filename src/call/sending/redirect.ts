// Follows a redirect as `fetch` would: with the same method and body or as a GET, and without the headers that only the
// first host may see.

/** Undefined: the response is not a redirect. */
export function followRedirect(response: Response, request: Request): Request | undefined {
  const location = response.headers.get('location');
  if (!redirects.has(response.status) || location === null) return undefined;
  const target = new URL(location, request.url);
  const headers = new Headers(request.headers);
  if (target.origin !== new URL(request.url).origin) for (const name of hostHeaders) headers.delete(name);
  if (!becomesGet(response.status, request.method))
    return new Request(target, new Request(request, { headers }));
  for (const name of bodyHeaders) headers.delete(name);
  return new Request(target, { headers });
}

/** A PUT or DELETE keeps its method: as a GET it would get a response, and nothing would be done. */
function becomesGet(status: number, method: string): boolean {
  return status === 303 || ((status === 301 || status === 302) && method === 'POST');
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const hostHeaders = ['authorization', 'proxy-authorization', 'cookie', 'host'];
const bodyHeaders = [
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-type',
];
