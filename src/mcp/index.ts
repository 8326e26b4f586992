// The proxy in front of an MCP server, for the command. `semel/mcp`, for a server of one's own, is handler.ts.

export { metaNames } from './asked.ts';
export { type Exported, exportedPolicies } from './exported.ts';
export { type HttpProxy, proxyHttp } from './http.ts';
export { type Inspected, inspected, starterFile } from './inspect.ts';
export { toolsAt, toolsOfCommand, Unauthorized } from './listing.ts';
export { type FilePolicy, type PolicyFile, readPolicyFile } from './policies.ts';
export { strangersIn } from './policy-strangers.ts';
export { serverEnv } from './server-env.ts';
export { proxyStdio } from './stdio.ts';
export { toolCalls } from './tool-calls.ts';
