// Connects to a port where nobody listens, in each of Node's ways, and says how
// that failed: refused.cjs PORT
'use strict';
const http2 = require('node:http2');
const https = require('node:https');
const net = require('node:net');
const tls = require('node:tls');
const port = Number(process.argv[2]);
const ways = {
  net: () => net.connect(port, '127.0.0.1'),
  name: () => net.connect({ port, host: 'localhost', family: 4 }),
  tls: () => tls.connect({ port, host: '127.0.0.1' }),
  https: () => https.get({ port, host: '127.0.0.1' }),
  http2: () => http2.connect(`https://127.0.0.1:${port}`),
};
(async () => {
  for (const [name, connect] of Object.entries(ways)) {
    await new Promise((resolve) => {
      let connected = false;
      const c = connect();
      c.on('connect', () => { connected = true; });
      c.on('error', (e) => {
        console.log(name, e.code, e.syscall, e.message, e.address, e.port, e.errno, connected);
        resolve();
      });
    });
  }
  await fetch(`https://127.0.0.1:${port}`).catch((e) => console.log('fetch', e.cause.code));
  console.log('destroyed', await new Promise((resolve) => {
    const c = net.connect(port, '127.0.0.1').on('error', (e) => resolve(e.code)).on('close', () => resolve('closed'));
    c.destroy();
  }));
})();
