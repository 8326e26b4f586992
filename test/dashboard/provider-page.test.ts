// Which ids of providers become links, and that no other text does.

import { expect, test } from 'vitest';
import { findProviderPage } from '../../dashboard/provider-page.ts';

test.each([
  ['re_3PZ2x8Lk9Qa', 'https://dashboard.stripe.com/search?query=re_3PZ2x8Lk9Qa'],
  ['cs_test_a1B2c3D4e5', 'https://dashboard.stripe.com/search?query=cs_test_a1B2c3D4e5'],
  ['https://github.com/o/r/issues/7#issuecomment-1', 'https://github.com/o/r/issues/7#issuecomment-1'],
])('%s has a page', (remoteRef, url) => {
  expect(findProviderPage(remoteRef)?.url).toBe(url);
});

test.each([
  undefined,
  'm-1',
  're_1',
  're_3PZ2x8Lk9Qa&x=1',
  're_3PZ2x8Lk9Qa\n',
  'javascript:alert(1)',
  'http://github.com/o/r',
  'https://github.com.example/o/r',
  'https://someone@github.com/o/r',
  'https://github.com:8443/o/r',
  'https://example.com/re_3PZ2x8Lk9Qa',
  'https://constructor/',
])('%j has none', (remoteRef) => {
  expect(findProviderPage(remoteRef)).toBeUndefined();
});
