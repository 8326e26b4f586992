// One command to a Redis and its whole answer, as text: for what is asked before a driver can connect.

import { once } from 'node:events';
import { connect } from 'node:net';

/** Undefined if nobody answers there. */
export async function askRedis(port: number, command: string): Promise<string | undefined> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  let answer = '';
  socket.on('data', (text: string) => {
    answer += text;
  });
  socket.write(`${command}\r\nQUIT\r\n`);
  try {
    await once(socket, 'end');
  } catch {
    return undefined;
  } finally {
    socket.destroy();
  }
  // QUIT's own.
  return answer.replace(/\+OK\r\n$/, '');
}
