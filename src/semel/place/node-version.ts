// Says in one sentence that this Node.js cannot run semel, before anything else fails less clearly.

import { supportSentence } from '../../core/node-support.ts';

const tooOld = supportSentence(process.versions.node);
if (tooOld !== undefined) throw new Error(tooOld);
