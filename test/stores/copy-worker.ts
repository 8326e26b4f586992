// A copy that is killed at its n-th question to either store: nothing is tidied up.
import { storeAt } from '../../src/semel/index.ts';
import { copyLedger } from '../../src/store/move/copy.ts';
import type { Raw } from '../../src/store/move/raw.ts';

const [from = '', to = '', killAt = '', when = ''] = process.argv.slice(2);
let asked = 0;

function mortal(raw: Raw): Raw {
  return new Proxy(raw, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        asked += 1;
        const isLast = asked === Number(killAt);
        if (isLast && when === 'before') process.kill(process.pid, 'SIGKILL');
        const answer = await method.apply(target, args);
        if (isLast) process.kill(process.pid, 'SIGKILL');
        return answer;
      };
    },
  });
}

const [source, target] = [await storeAt(from), await storeAt(to)];
await copyLedger({ source: mortal(source.raw as Raw), target: mortal(target.raw as Raw) });
await Promise.all([source.close(), target.close()]);
