// Each incident, each way, with real processes: as many effects and doubts as docs/guides/incidents.md says.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { incidents } from './index.ts';
import { page } from './page.ts';
import { play } from './stage.ts';
import { whyPage } from './why.ts';

for (const incident of incidents) {
  describe.concurrent(incident.title, () => {
    for (const { name, effects, inDoubt } of incident.ways) {
      test(`${name}: ${effects} landed, ${inDoubt} in doubt`, async () => {
        expect(await play(incident, name)).toEqual({ effects, inDoubt });
      });
    }

    test('semel never lands more than was wanted, and less only where it says so', () => {
      const [bare, ...ways] = incident.ways;
      expect(bare?.name).toBe('bare');
      expect(bare?.effects).not.toBe(incident.wanted);
      for (const { effects, inDoubt } of ways) {
        expect(effects).toBeLessThanOrEqual(incident.wanted);
        if (effects < incident.wanted) expect(inDoubt).toBeGreaterThanOrEqual(incident.wanted - effects);
      }
    });
  });
}

test('docs/guides/incidents.md and docs/start/why.md are what these incidents say: npm run incidents writes them', () => {
  const written = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
  expect(written('guides/incidents.md')).toBe(page(incidents));
  expect(written('start/why.md')).toBe(whyPage());
});
