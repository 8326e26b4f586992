// Plays all incidents with real processes, prints what landed, and writes docs/incidents.md and docs/why.md.
import { writeFileSync } from 'node:fs';
import { incidents } from '../test/incidents/index.ts';
import { outcomeTable, type Played, page } from '../test/incidents/page.ts';
import { play } from '../test/incidents/stage.ts';
import { whyPage } from '../test/incidents/why.ts';

// Nothing is left behind when somebody loses patience: processes and folders go with the exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const played: Played[] = [];
const surprises: string[] = [];
for (const incident of incidents) {
  const { title, wanted, ways } = incident;
  console.error(title);
  for (const { name, ...expected } of ways) {
    const outcome = await play(incident, name);
    played.push({ incident: title, way: name, wanted, ...outcome });
    if (outcome.effects !== expected.effects || outcome.inDoubt !== expected.inDoubt) {
      surprises.push(
        `${title}, ${name}: expected ${expected.effects} effects, ${expected.inDoubt} in doubt.`,
      );
    }
  }
}
console.log(outcomeTable(played));
if (surprises.length > 0) {
  console.error(`\n${surprises.join('\n')}\ndocs/incidents.md and docs/why.md were not written.`);
  process.exitCode = 1;
} else {
  writeFileSync('docs/incidents.md', page(incidents));
  writeFileSync('docs/why.md', whyPage());
}
