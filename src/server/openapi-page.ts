// The API as a page for people: /docs, written from the same description as /openapi.json. Nothing in it runs, and nothing comes
// from elsewhere.

import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { PageFile } from './exchange/pages.ts';
import type { JsonSchema } from './exchange/schema.ts';

const style = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; }
h2 { margin-top: 2.5rem; overflow-wrap: anywhere; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid #8886; padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; }
nav a { display: inline-block; margin-right: 1rem; }`;

const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

type Schemas = Readonly<Record<string, JsonSchema>>;

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly {
    readonly name?: string;
    readonly required?: boolean;
    readonly schema: JsonSchema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>> }>
  >;
}

export function describeApiPage(api: JsonSchema): PageFile {
  const paths = api.paths as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  const { schemas } = api.components as { readonly schemas: Schemas };
  const operations = Object.entries(paths).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  );
  const links = operations.map(
    ({ name, operation }) => `<a href="#${operation.operationId}">${escapeHtml(name)}</a>`,
  );
  const named = Object.entries(schemas).map(
    ([name, schema]) => `<h2 id="${name}">${escapeHtml(name)}</h2>${fieldTable(schema)}`,
  );
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>semel: HTTP API</title><style>${style}</style></head>
<body>
<h1>semel: HTTP API</h1>
<p>Ask before an effect, report after it. Send the header <code>Authorization: Bearer &lt;token&gt;</code>; a token for all namespaces chooses one by
<code>Semel-Namespace</code>. Programs read <a href="/openapi.json">openapi.json</a>.</p>
<nav>${links.join('\n')}</nav>
<main>${operations.map(({ name, operation }) => describeOperation(name, operation)).join('\n')}
${named.join('\n')}</main>
</body>
</html>
`;
  const bytes = Buffer.from(html);
  return {
    bytes,
    zipped: gzipSync(bytes, { level: 9 }),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'x-frame-options': 'DENY',
    },
  };
}

function describeOperation(name: string, operation: Operation): string {
  const {
    operationId,
    summary,
    description = 'Needs no token.',
    parameters = [],
    requestBody,
    responses,
  } = operation;
  const query = parameters.filter((parameter) => parameter.name !== undefined);
  const asFields = {
    properties: Object.fromEntries(query.map((parameter) => [parameter.name, parameter.schema])),
    required: query.filter(({ required }) => required).map((parameter) => parameter.name),
  };
  const body = requestBody?.content['application/json']?.schema;
  const answer = responses['200']?.content?.['application/json']?.schema;
  return `<h2 id="${operationId}"><code>${escapeHtml(name)}</code></h2>
<p>${marked(summary)} ${marked(description)}</p>
${query.length === 0 ? '' : `<h3>Query</h3>${fieldTable(asFields)}`}
${body === undefined ? '' : `<h3>Body</h3>${fieldTable(body)}`}
${answer === undefined ? '' : `<h3>Answer</h3>${fieldTable(answer)}`}`;
}

function fieldTable(schema: JsonSchema): string {
  const [first, ...others] = (schema.oneOf ?? schema.anyOf ?? []) as readonly JsonSchema[];
  if (first !== undefined) return [first, ...others].map(fieldTable).join('<p>or</p>');
  const fields = Object.entries((schema.properties ?? {}) as Schemas);
  if (fields.length === 0) return '<p>An object.</p>';
  const required = new Set((schema.required ?? []) as readonly string[]);
  const rows = fields.map(
    ([name, field]) =>
      `<tr><td><code>${escapeHtml(name)}</code></td><td>${typeText(field)}</td><td>${required.has(name) ? 'always' : ''}</td><td>${marked(String(field.description ?? ''))}</td></tr>`,
  );
  return `<table><tr><th>Field</th><th>Type</th><th></th><th></th></tr>${rows.join('')}</table>`;
}

function typeText({ type, enum: words, const: word, items, $ref: ref }: JsonSchema): string {
  if (typeof ref === 'string') {
    const name = escapeHtml(ref.slice(ref.lastIndexOf('/') + 1));
    return `<a href="#${name}">${name}</a>`;
  }
  if (word !== undefined) return `<code>${escapeHtml(JSON.stringify(word))}</code>`;
  if (Array.isArray(words)) return words.map((each) => `<code>${escapeHtml(String(each))}</code>`).join(', ');
  if (type === 'array') return `list of ${typeText((items ?? {}) as JsonSchema)}`;
  return type === undefined ? 'any' : escapeHtml([type].flat().join(' or '));
}

function marked(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
