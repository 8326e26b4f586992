// The real client of Prisma for a schema of one table. Its generator needs a program from outside the registry; this is what it
// writes for `model Order { id String @id }`, in short.

import { PrismaPg } from '@prisma/adapter-pg';
import { type GetPrismaClientConfig, getPrismaClient } from '@prisma/client/runtime/client';

const config: GetPrismaClientConfig = {
  previewFeatures: [],
  clientVersion: '7.10.0',
  engineVersion: 'd1b3f377ca835d73fd50954a5e22128b9ebdd6b8',
  activeProvider: 'postgresql',
  inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n\nmodel Order {\n  id String @id\n}\n',
  runtimeDataModel: JSON.parse(
    '{"models":{"Order":{"fields":[{"name":"id","kind":"scalar","type":"String"}],"dbName":null,"schema":null}},"enums":{},"types":{}}',
  ),
  parameterizationSchema: {
    strings: [
      'where',
      'Order.findUnique',
      'Order.findUniqueOrThrow',
      'orderBy',
      'cursor',
      'Order.findFirst',
      'Order.findFirstOrThrow',
      'Order.findMany',
      'data',
      'Order.createOne',
      'Order.createMany',
      'Order.createManyAndReturn',
      'Order.updateOne',
      'Order.updateMany',
      'Order.updateManyAndReturn',
      'create',
      'update',
      'Order.upsertOne',
      'Order.deleteOne',
      'Order.deleteMany',
      'having',
      '_count',
      '_min',
      '_max',
      'Order.groupBy',
      'Order.aggregate',
      'AND',
      'OR',
      'NOT',
      'id',
      'equals',
      'in',
      'notIn',
      'lt',
      'lte',
      'gt',
      'gte',
      'contains',
      'startsWith',
      'endsWith',
      'not',
      'set',
    ],
    graph:
      'JAkQBBoAAB8AMBsAAAQAEBwAAB8AMB0BAAAAAQEAAAABACABAAAAAQAgBBoAAB8AMBsAAAQAEBwAAB8AMB0BACAAIQADAAAABAAgAwAABQAwBAAAAQAgAwAAAAQAIAMAAAUAMAQAAAEAIAMAAAAEACADAAAFADAEAAABACABHQEAAAABAQgAAAkAIAEdAQAAAAEBCAAACwAwAQgAAAsAMAEdAQAkACECAAAAAQAgCAAADgAgAR0BACQAIQIAAAAEACAIAAAQACACAAAABAAgCAAAEAAgAwAAAAEAIA8AAAkAIBAAAA4AIAEAAAABACABAAAABAAgAxUAACEAIBYAACMAIBcAACIAIAQaAAAaADAbAAAXABAcAAAaADAdAQAbACEDAAAABAAgAwAAFgAwFAAAFwAgAwAAAAQAIAMAAAUAMAQAAAEAIAQaAAAaADAbAAAXABAcAAAaADAdAQAbACEOFQAAHQAgFgAAHgAgFwAAHgAgHgEAAAABHwEAAAAEIAEAAAAEIQEAAAABIgEAAAABIwEAAAABJAEAAAABJQEAAAABJgEAAAABJwEAAAABKAEAHAAhDhUAAB0AIBYAAB4AIBcAAB4AIB4BAAAAAR8BAAAABCABAAAABCEBAAAAASIBAAAAASMBAAAAASQBAAAAASUBAAAAASYBAAAAAScBAAAAASgBABwAIQgeAgAAAAEfAgAAAAQgAgAAAAQhAgAAAAEiAgAAAAEjAgAAAAEkAgAAAAEoAgAdACELHgEAAAABHwEAAAAEIAEAAAAEIQEAAAABIgEAAAABIwEAAAABJAEAAAABJQEAAAABJgEAAAABJwEAAAABKAEAHgAhBBoAAB8AMBsAAAQAEBwAAB8AMB0BACAAIQseAQAAAAEfAQAAAAQgAQAAAAQhAQAAAAEiAQAAAAEjAQAAAAEkAQAAAAElAQAAAAEmAQAAAAEnAQAAAAEoAQAeACEAAAABKQEAAAABAAAAAAMVAAYWAAcXAAgAAAADFQAGFgAHFwAIAQIBAgMBBQYBBgcBBwgBCQoBCgwCCw0DDA8BDRECDhIEERMBEhQBExUCGBgFGRkJ',
  },
  compilerWasm: {
    getRuntime: () => load('query_compiler_fast_bg.postgresql.mjs'),
    async getQueryCompilerWasmModule() {
      const { wasm } = await load('query_compiler_fast_bg.postgresql.wasm-base64.mjs');
      return new WebAssembly.Module(Buffer.from(wasm, 'base64'));
    },
    importName: './query_compiler_fast_bg.js',
  },
};

// Neither has types.
const { WebAssembly } = globalThis as never as { WebAssembly: { Module: new (bytes: Uint8Array) => never } };
const load = (name: string) => import(`@prisma/client/runtime/${name}`);

export interface PrismaTransaction {
  $executeRawUnsafe(text: string): Promise<number>;
}

export interface PrismaClient extends PrismaTransaction {
  $transaction<T>(
    work: (tx: PrismaTransaction) => Promise<T>,
    limits: { readonly timeout: number; readonly maxWait: number },
  ): Promise<T>;
  $disconnect(): Promise<void>;
}

export function openPrisma(url: string): PrismaClient {
  const Client = getPrismaClient(config) as unknown as new (options: object) => PrismaClient;
  return new Client({ adapter: new PrismaPg({ connectionString: url }) });
}
