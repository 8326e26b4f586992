// Blocks on several threads. The sum does not depend on which thread ran what.

import { Worker } from 'node:worker_threads';
import type { Block, BlockResult } from './block.ts';

export interface PoolOptions {
  readonly threads: number;
  readonly stopAtFirst: boolean;
  readonly onResult?: (result: BlockResult) => void;
}

/** In the order of the blocks; with `stopAtFirst`, those that were run until something failed. */
export async function runBlocks(
  blocks: readonly Block[],
  { threads, stopAtFirst, onResult }: PoolOptions,
): Promise<readonly BlockResult[]> {
  const waiting = [...blocks];
  const results: BlockResult[] = [];
  let stopped = false;

  async function work(): Promise<void> {
    const thread = new Worker(new URL('./block-thread.ts', import.meta.url), {
      workerData: { stopAtFirst },
      // Nearly everything dies young: a larger nursery halves the collector's work.
      resourceLimits: { maxYoungGenerationSizeMb: 64 },
    });
    try {
      for (let block = waiting.shift(); block !== undefined && !stopped; block = waiting.shift()) {
        const result = await ask(thread, block);
        results.push(result);
        onResult?.(result);
        if (stopAtFirst && result.failures.length > 0) stopped = true;
      }
    } finally {
      await thread.terminate();
    }
  }

  await Promise.all(Array.from({ length: Math.min(threads, blocks.length) }, work));
  return results.sort((a, b) => a.block.seed - b.block.seed);
}

function ask(thread: Worker, block: Block): Promise<BlockResult> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => reject(error);
    thread.once('error', onError);
    thread.once('message', (result: BlockResult) => {
      thread.off('error', onError);
      resolve(result);
    });
    thread.postMessage(block);
  });
}
