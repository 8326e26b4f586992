// The proxy in front of an MCP server, for the command. `semel/mcp`, for a server of one's own, is handler.ts.

export { type Exported, exportedPolicies } from './policy/exported.ts';
export { type FilePolicy, type PolicyFile, readPolicyFile } from './policy/policies.ts';
export { unknownNames } from './policy/unknown-names.ts';
export { metaNames } from './proxy/asked.ts';
export { type HttpProxy, proxyHttp } from './proxy/http.ts';
export { type Inspected, inspected, starterFile } from './proxy/inspect.ts';
export { toolsAt, toolsOfCommand, Unauthorized } from './proxy/listing.ts';
export { serverEnv } from './proxy/server-env.ts';
export { proxyStdio } from './proxy/stdio.ts';
export { toolCalls } from './proxy/tool-calls.ts';
