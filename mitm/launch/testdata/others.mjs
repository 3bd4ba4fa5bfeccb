// Speaks something that is not HTTP, then HTTP to the proxy: others.mjs ADDR ORIGIN
import http from 'node:http';
import net from 'node:net';
import { createInterface } from 'node:readline';

const [addr, origin] = process.argv.slice(2);
const [host, port] = addr.split(':');
await new Promise((resolve, reject) => {
  const socket = net.connect(Number(port), host);
  socket.on('error', reject);
  let lines = 0;
  createInterface({ input: socket }).on('line', (line) => {
    console.log(line);
    if (++lines === 1) socket.write('HELO\n');
    else socket.end();
  });
  socket.on('close', resolve);
});
const proxy = new URL(process.env.HTTP_PROXY);
await new Promise((resolve, reject) => {
  http.get({ host: proxy.hostname, port: proxy.port, path: `${origin}/proxied`, headers: { host: new URL(origin).host } }, (res) => {
    res.setEncoding('utf8').on('data', (d) => console.log('proxied', d)).on('end', resolve);
  }).on('error', reject);
});
