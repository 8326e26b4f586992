// The adapter for LangChain and LangGraph, against the real packages with an offline model.
import { playContract } from './contract.ts';
import { langchainByMiddleware, langchainByTool } from './langchain-harness.ts';

playContract('LangChain, guarded by tool', langchainByTool);
playContract('LangChain, guarded by middleware', langchainByMiddleware);
