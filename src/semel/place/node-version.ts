// Says in one sentence that this Node.js cannot run semel, before anything else fails less clearly.

import { describeUnsupportedNode } from '../../core/node-support.ts';

const tooOld = describeUnsupportedNode(process.versions.node);
if (tooOld !== undefined) throw new Error(tooOld);
