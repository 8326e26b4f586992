// The same abuse on a real file: what its texts become as SQL and as rows.

import { sqliteStore } from '../../src/stores/sqlite/index.ts';
import { newPathInMemory } from '../stores/sqlite-folder.ts';
import { abuse } from './abuse/suite.ts';

abuse(() => sqliteStore({ path: newPathInMemory() }));
