// Plays the adapter contract on a harness, with a line for what its framework has no means for.
import { describe, test } from 'vitest';
import { type AdapterHarness, adapterContract, whyAbsent } from '../support/adapter-contract/index.ts';

export function playContract(name: string, harness: AdapterHarness): void {
  describe(`${name} keeps the adapter contract`, () => {
    for (const each of adapterContract()) {
      const reason = whyAbsent(each, harness);
      test(each.name, async (context) => {
        if (reason !== undefined) {
          console.warn(`${name}: "${each.name}" is not played: ${reason}`);
          context.skip(reason);
        }
        await each.run(harness);
      });
    }
  });
}
