// Run by runners.test.ts with `node --test`.
import { test } from 'node:test';
import { createSemel } from '../../../src/index.ts';
import { landsOnce } from '../../../src/testing/index.ts';
import { rightTool, wrongTool } from './smoke.ts';

test('a right tool lands once', () => rightTool({ createSemel, landsOnce }));
test('a wrong tool fails', () => wrongTool({ createSemel, landsOnce }));
