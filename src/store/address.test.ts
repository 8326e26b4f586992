import { inspect } from 'node:util';
import { createSemel } from 'semel';
import { expect, test } from 'vitest';
import { fullAddress, looksLikeServer, redactAddress, redactSecrets } from './address.ts';

test.each([
  ['sqlite:/srv/ledger.db', 'sqlite:/srv/ledger.db'],
  ['sqlite:/srv/a:b@c.db', 'sqlite:/srv/a:b@c.db'],
  ['postgres://db.example/shop', 'postgres://db.example/shop'],
  ['postgres://ada@db.example:5432/shop?schema=jobs', 'postgres://ada@db.example:5432/shop?schema=jobs'],
  ['postgres://ada:secret@db.example:5432/shop', 'postgres://ada@db.example:5432/shop'],
  ['postgres://ada:secret:@x@db.example/shop', 'postgres://ada@db.example/shop'],
  ['rediss://:secret@cache.example:6380/0', 'rediss://@cache.example:6380/0'],
  ['postgres://db/shop?password=secret', 'postgres://db/shop'],
  ['postgres://db/shop?password=secret&schema=jobs', 'postgres://db/shop?schema=jobs'],
  ['postgres://db/shop?schema=jobs&password=secret', 'postgres://db/shop?schema=jobs'],
])('%s is shown as %s', (address, shown) => {
  expect(redactAddress(address)).toBe(shown);
});

test.each([
  [undefined, { schema: 'jobs' }, undefined],
  ['postgres://db/shop', { schema: undefined }, 'postgres://db/shop'],
  ['postgres://db/shop', { schema: 'jobs' }, 'postgres://db/shop?schema=jobs'],
  [
    'redis://db/0?x=1',
    { prefix: 'a&b', durability: 'accept-loss' },
    'redis://db/0?x=1&prefix=a%26b&durability=accept-loss',
  ],
])('%s with %j leads to %s', (url, ours, address) => {
  expect(fullAddress(url, ours)).toBe(address);
});

const secret = 'hunter2';
const marks = [
  '',
  '/',
  '?',
  '#',
  '@',
  ':',
  '&',
  '=',
  '%',
  ' ',
  '[',
  '\\',
  '"',
  '\n',
  '%2F',
  '://',
  '12/',
  '12?',
  '12#',
];
const passwords = marks.flatMap((mark) => [
  `${mark}${secret}`,
  `${secret}${mark}`,
  `${mark}${secret}${mark}@`,
]);
const forms: readonly ((password: string) => string)[] = [
  (password) => `postgres://ada:${password}@db.example:5432/shop`,
  (password) => `postgresql://:${password}@db.example/shop?schema=jobs`,
  (password) => `rediss://${password}@cache.example/0`,
  (password) => `redis://ada:${password}@cache.example/0?prefix=a`,
  (password) => `sqlite://ada:${password}@db.example/shop`,
  (password) => `sqlite:ada:${password}@db.example/shop`,
  (password) => `sqlite:/ada:${password}@db.example/shop`,
  (password) => `sqlite:postgres://ada:${password}@db.example/shop`,
  (password) => `postgres:ada:${password}@db.example`,
  (password) => `Postgres://ada:${password}@db.example`,
  (password) => ` mysql://ada:${password}@db.example`,
  (password) => `host=db.example user=ada password=${password}`,
  (password) => `ada:${password}@db.example`,
];

test('no message about an address holds its password, however it was typed', () => {
  for (const form of forms)
    for (const password of passwords) {
      const address = form(password);
      expect(redactAddress(address), address).not.toContain(secret);
      const said = `There is no file ${address}, nor ${JSON.stringify(address)}.`;
      expect(redactSecrets(said, [address]), address).not.toContain(secret);
      try {
        createSemel({ store: address, onWarning: () => undefined });
      } catch (error) {
        expect(inspect(error, { depth: 9, showHidden: true }), address).not.toContain(secret);
      }
    }
});

test('a password that could be a port, path or query is refused before the address is used', () => {
  for (const password of ['12/34', '12?34', '12#34', '1%zz', 'a/b'])
    expect(() => createSemel({ store: `postgres://ada:${password}@db.example/shop` })).toThrow(
      /percent-encoded/,
    );
  expect(() => createSemel({ store: 'postgres://ada:12%2F34@db.example/shop' })).not.toThrow();
});

test.each(['postgres://db/shop&password=hunter2', 'redis://db/0;password=hunter2'])(
  '%s, whose parameters read as a path, is refused before a place is made of it, and never quoted',
  (store) => {
    expect(() => createSemel({ store })).toThrow(/percent-encoded/);
    expect(redactSecrets(`There is no ${store}.`)).not.toContain(secret);
  },
);

test.each([
  ['postgres://ada:hunter2', 'postgres://…'],
  ['postgres://db/shop?pass%77ord=hunter2', 'postgres://db/shop'],
  ['postgres://db/shop?sslkey=a.pem&token=hunter2', 'postgres://db/shop?sslkey=a.pem'],
  ['postgres://db/shop#hunter2', 'postgres://db/shop'],
  ['redis://hunter2@cache/0', 'redis://@cache/0'],
  ['postgres://[::1]:5432/shop', 'postgres://[::1]:5432/shop'],
  ['postgres://db/shop&password=hunter2', 'postgres://db/shop'],
  ['sqlserver://db;user=sa;password=hunter2', 'sqlserver://db'],
  ['postgres://db/shop?schema=jobs;password=hunter2', 'postgres://db/shop'],
  ['postgres://db/shop?schema=jobs%26password=hunter2', 'postgres://db/shop'],
  ['redis://db/0?prefix=a%26b', 'redis://db/0?prefix=a%26b'],
  ['postgres://db/my%20shop', 'postgres://db/my%20shop'],
])('%s is shown as %s', (address, shown) => {
  expect(redactAddress(address)).toBe(shown);
});

test('text without an address is left as it is', () => {
  const text = 'See https://example.com/a?b=c#d; mail ada@example.com: 12:30, sqlite:/srv/x.db.';
  expect(redactSecrets(text, ['ada@example.com', 'sqlite:/srv/x.db'])).toBe(text);
});

test('a long word takes a time that grows with its length only', () => {
  for (const sign of ['a', '1', ':', '.', 'a://', 'x:1@', ';', 'a=;'])
    for (const text of [
      sign.repeat(1_000_000),
      `sqlite:${sign.repeat(1_000_000)}`,
      `pg://h/${sign.repeat(1_000_000)}`,
    ]) {
      expect(redactSecrets(text, [text]).length).toBeGreaterThan(0);
      expect(redactAddress(text).length).toBeGreaterThan(0);
      expect(typeof looksLikeServer(text)).toBe('boolean');
    }
});
