// @dbos-inc/dbos-sdk on Postgres: a workflow of one step, whose id is what names the call.

import { type Effect, effect, load, type Peer } from './peer.ts';

interface Dbos {
  readonly DBOS: {
    setConfig(config: {
      name: string;
      systemDatabaseUrl: string;
      systemDatabasePoolSize: number;
      logLevel: string;
    }): void;
    registerWorkflow(work: Workflow, options: { name: string }): Workflow;
    runStep(work: Effect, options: { name: string }): Promise<unknown>;
    startWorkflow(
      work: Workflow,
      options: { workflowID: string },
    ): (args: object) => Promise<{ getResult(): Promise<unknown> }>;
    launch(): Promise<void>;
    shutdown(): Promise<void>;
  };
}

type Workflow = (args: object) => Promise<unknown>;

/** As many connections as the statements by hand have. */
export async function dbos(url: string, connections: number): Promise<Peer> {
  const { DBOS } = await load<Dbos>('@dbos-inc/dbos-sdk');
  const database = new URL(url);
  database.pathname = '/dbos';
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: database.href,
    systemDatabasePoolSize: connections,
    logLevel: 'error',
  });
  const work = DBOS.registerWorkflow(() => DBOS.runStep(effect, { name: 'email.send' }), { name: 'send' });
  await DBOS.launch();
  return {
    name: 'DBOS',
    async send(args) {
      const workflowID = (args as { lead: string }).lead;
      const handle = await DBOS.startWorkflow(work, { workflowID })(args);
      return handle.getResult();
    },
    [Symbol.asyncDispose]: () => DBOS.shutdown(),
  };
}
