// Uses each of Node's clients once: clients.mjs HTTPS-ORIGIN HTTP-ORIGIN [one]
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker, isMainThread, workerData, parentPort } from 'node:worker_threads';

function viaHTTP2(url) {
  return new Promise((resolve, reject) => {
    const session = http2.connect(new URL(url).origin);
    session.on('error', reject);
    const stream = session.request({ ':path': new URL(url).pathname });
    let body = '';
    stream.setEncoding('utf8').on('data', (d) => { body += d; }).on('error', reject);
    stream.on('end', () => session.close(() => resolve(body)));
    stream.end();
  });
}

function viaHTTP(module, url) {
  return new Promise((resolve, reject) => {
    module.get(url, { agent: false }, (res) => {
      let body = '';
      res.setEncoding('utf8').on('data', (d) => { body += d; }).on('end', () => resolve(body));
    }).on('error', reject);
  });
}

if (!isMainThread) {
  parentPort.postMessage(await viaHTTP2(workerData));
} else {
  const [secure, plain, one] = process.argv.slice(2);
  if (one) {
    process.stdout.write(await viaHTTP2(`${secure}/child`));
  } else {
    console.log('http2', await viaHTTP2(`${secure}/http2`));
    console.log('https', await viaHTTP(https, `${secure}/https`));
    const res = await fetch(`${secure}/fetch`);
    console.log('fetch', await res.text());
    console.log('http', await viaHTTP(http, `${plain}/http`));
    const self = fileURLToPath(import.meta.url);
    const worker = new Worker(self, { workerData: `${secure}/worker` });
    console.log('worker', await new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject)));
    const child = spawnSync(process.execPath, [self, secure, plain, 'one'], { encoding: 'utf8' });
    console.log('child', child.stdout + child.stderr);
    process.exit(0);
  }
}
