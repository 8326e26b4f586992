// The proxy in front of an MCP server, for the command. `semel/mcp`, for a server of one's own, is handler.ts.

export { type HttpProxy, proxyHttp } from './http.ts';
export { type Inspected, inspected, starterFile, toolsOf } from './inspect.ts';
export { type PolicyFile, readPolicyFile } from './policies.ts';
export { proxyStdio } from './stdio.ts';
export { metaNames, toolCalls } from './tool-calls.ts';
