// The dashboard's files. They hold no data, so that anybody who reaches the server may load them; what they show needs a token.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

export interface PageFile {
  readonly bytes: Buffer;
  readonly zipped: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Pages {
  find(path: string): PageFile | undefined;
}

/** Every view is an address of its own; the page itself decides what to show. */
const views = ['/', '/doubts', '/record', '/search', '/overview', '/jobs', '/outbox'];

const files = {
  'index.html': 'text/html; charset=utf-8',
  'app.js': 'text/javascript; charset=utf-8',
  'app.css': 'text/css; charset=utf-8',
  'theme.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

/** Nothing from elsewhere, nothing inline, no frames, and no text becomes a script or markup. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export const noPages: Pages = { find: () => undefined };

/** The files of this folder, read once. Without them there is no dashboard, and the API works as before. */
export function loadPages(folder: string): Pages {
  const byPath = new Map<string, PageFile>();
  try {
    for (const [name, type] of Object.entries(files)) {
      const bytes = readFileSync(join(folder, name));
      const headers = {
        'content-type': type,
        'content-security-policy': policy,
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'permissions-policy': 'camera=(), geolocation=(), microphone=()',
        'x-frame-options': 'DENY',
      };
      byPath.set(`/assets/${name}`, { bytes, zipped: gzipSync(bytes, { level: 9 }), headers });
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return noPages;
    throw error;
  }
  const start = byPath.get('/assets/index.html');
  return { find: (path) => (views.includes(path) ? start : byPath.get(path)) };
}
