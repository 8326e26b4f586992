// `semel explain`: the section of the documentation about an error code, a word, a contract field or an exit code. Offline.

import { command } from '../../command.ts';
import { renderMarkdown } from '../../render/markdown.ts';
import { print, printJson, styled } from '../../render/print.ts';
import { textWidth, wrap } from '../../render/wrap.ts';
import { usageError } from '../../usage.ts';
import { allTopics, findTopics, suggestTopic, type Topic } from './topics.ts';

export default command({
  name: 'explain',
  takes: '[<topic>]',
  about: `Explains an error code, an exit code, a refusal of semel serve, a finding of semel doctor, an effect class, a contract field, an event or a word
of semel, from the documentation in the package. Without a topic: lists them all.`,
  flags: {},
  examples: ['semel explain IN_DOUBT', 'semel explain 76', 'semel explain drift', 'semel explain per --json'],
  async run({ values, positionals }) {
    const topics = allTopics();
    const name = positionals.join(' ');
    const found = name === '' ? topics : findTopics(topics, name);
    if (found.length === 0) {
      const near = suggestTopic(topics, name);
      const next = near === undefined ? 'semel explain lists all topics.' : `Did you mean ${near}?`;
      throw usageError('explain', `there is no topic ${JSON.stringify(name)}`, next);
    }
    if (values.json) printJson(name === '' ? found.map(({ text: _, ...topic }) => topic) : found);
    else if (name === '') print(...listTopics(topics));
    else print(...found.flatMap((topic, at) => (at === 0 ? page(topic) : ['', ...page(topic)])));
    return 0;
  },
});

function page({ name, kind, page, text }: Topic): readonly string[] {
  return [
    `${styled('bold', name)}  ${kind}`,
    '',
    ...renderMarkdown(text, textWidth()),
    '',
    styled('dim', `In the package: ${page}`),
  ];
}

function listTopics(topics: readonly Topic[]): readonly string[] {
  const kinds = Map.groupBy(topics, ({ kind }) => kind);
  return [...kinds].flatMap(([kind, members]) => [
    styled('bold', `${kind}:`),
    ...wrap(members.map(({ name }) => name.replaceAll(' ', '-')).join(', '), textWidth(), '  '),
  ]);
}
