// The adapter for the AI SDK, against the real packages of versions 6 and 7 with their offline models.
import { aiSdk6, aiSdk7 } from './ai-sdk-harness.ts';
import { playContract } from './contract.ts';

playContract('AI SDK 6', aiSdk6);
playContract('AI SDK 7', aiSdk7);
