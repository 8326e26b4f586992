import { memoryStore } from '../../src/store/memory.ts';
import { abuse } from './abuse/suite.ts';

abuse(memoryStore);
