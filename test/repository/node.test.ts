import { expect, test } from 'vitest';

test('the suite runs on the Node that the project brings, not on the one of the machine', () => {
  expect(process.version).toMatch(/^v24\./);
});
