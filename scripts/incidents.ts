// Plays incidents with real processes and prints what landed. `npm run incidents -- refund crash` plays those whose title
// has one of the words; without words it plays all, and writes docs/guides/incidents.md and docs/start/why.md.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { incidents } from '../test/incidents/index.ts';
import { outcomeTable, type Played, page } from '../test/incidents/page.ts';
import { play } from '../test/incidents/stage.ts';
import { whyPage } from '../test/incidents/why.ts';

// Exiting removes processes and folders, on Ctrl-C too.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const { values, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { help: { type: 'boolean', short: 'h' } },
});
if (values.help === true) {
  console.log('npm run incidents [-- <word in a title> …]\n');
  for (const { title } of incidents) console.log(`  ${title}`);
  process.exit();
}
const isChosen = ({ title }: { readonly title: string }) =>
  words.length === 0 || words.some((word) => title.toLowerCase().includes(word.toLowerCase()));
const chosen = incidents.filter(isChosen);
if (chosen.length === 0) throw new Error(`No title contains ${words.join(' or ')}. See --help.`);

const played: Played[] = [];
const surprises: string[] = [];
for (const incident of chosen) {
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
  console.error(
    `\n${surprises.join('\n')}\ndocs/guides/incidents.md and docs/start/why.md were not written.`,
  );
  process.exitCode = 1;
} else if (words.length === 0) {
  writeFileSync('docs/guides/incidents.md', page(incidents));
  writeFileSync('docs/start/why.md', whyPage());
}
