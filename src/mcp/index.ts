// The MCP proxy, for the `semel` command. The public module `semel/mcp` is handler.ts.

export { type Exported, exportPolicies } from './policy/exported.ts';
export { type FilePolicy, type PolicyFile, readPolicyFile, toTerms } from './policy/policies.ts';
export { findUnknownNames } from './policy/unknown-names.ts';
export { metaNames } from './proxy/call-input.ts';
export { type HttpProxy, proxyHttp } from './proxy/http.ts';
export { createStarterFile, type Inspected, inspectTools } from './proxy/inspect.ts';
export { listCommandTools, listHttpTools, Unauthorized } from './proxy/listing.ts';
export { createServerEnv } from './proxy/server-env.ts';
export { serverName, workingFolder } from './proxy/server-name.ts';
export { proxyStdio } from './proxy/stdio.ts';
export { createToolCalls } from './proxy/tool-calls.ts';
export { isJsonInUtf8, isUncompressed, LimitExceeded, readBody } from './proxy/wire.ts';
