import { expect, test } from 'vitest';
import { fullAddress, shownAddress } from './address.ts';

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
  expect(shownAddress(address)).toBe(shown);
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
