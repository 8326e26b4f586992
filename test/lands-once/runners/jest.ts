// Run by runners.test.ts with jest, which takes no TypeScript: as the same text without its types.
import { createSemel } from 'semel';
import { landsOnce } from 'semel/testing';
import { rightTool, wrongTool } from './smoke.ts';

declare const test: (name: string, run: () => Promise<void>) => void;

test('a right tool lands once', () => rightTool({ createSemel, landsOnce }));
test('a wrong tool fails', () => wrongTool({ createSemel, landsOnce }));
