// OpenAI. It documents no key, and its SDK retries by itself: `ctx.fetch` prevents that if it could repeat the effect.

import { type Answer, inCauses } from './answer.ts';
import { defineRow } from './row.ts';

export const openaiRow = defineRow({
  name: 'openai',
  covers: 'The OpenAI API',
  key: 'none',
  verify: 'Retrieve by the id of an answer, or list stored objects.',
  note: 'Its SDK sends no key, and retries twice unless `maxRetries` is 0.',
  hosts: ['api.openai.com'],
  sdk: openaiError,
  source: 'https://platform.openai.com/docs/api-reference',
  checkedAt: '2026-11-16',
  verified: false,
});

/** `APIError` and what is derived from it. SDKs that look alike have no `param`. */
function openaiError(error: object): Answer | undefined {
  return inCauses(error, (each) => {
    if (!('requestID' in each && 'param' in each && 'status' in each)) return undefined;
    const { status, code, type } = each as Record<string, unknown>;
    return { status: typeof status === 'number' ? status : undefined, words: [code, type] };
  });
}
