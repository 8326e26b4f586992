// A thread that runs blocks, one after the other, as they are asked for.

import { parentPort, workerData } from 'node:worker_threads';
import { type Block, runBlock } from './block.ts';
import { outside } from './scheduler.ts';

const { stopAtFirst } = workerData as { readonly stopAtFirst: boolean };

parentPort?.on('message', (block: Block) => {
  outside(() => runBlock(block, stopAtFirst)).then(
    (result) => parentPort?.postMessage(result),
    // Past all handlers, so that the thread ends and its owner hears why.
    (error: unknown) =>
      setImmediate(() => {
        throw error;
      }),
  );
});
