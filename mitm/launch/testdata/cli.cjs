// A CommonJS program whose request is made by a worker with an environment of
// its own: cli.cjs ORIGIN
'use strict';
const http2 = require('node:http2');
const { Worker, isMainThread, workerData, parentPort } = require('node:worker_threads');

function get(origin, path, done) {
  const session = http2.connect(origin);
  const stream = session.request({ ':path': path });
  let body = '';
  stream.setEncoding('utf8').on('data', (d) => { body += d; });
  stream.on('end', () => session.close(() => done(body)));
  stream.end();
}

if (isMainThread) {
  const { NODE_EXTRA_CA_CERTS, NODE_OPTIONS } = process.env;
  const worker = new Worker(__filename, { workerData: process.argv[2], env: { NODE_EXTRA_CA_CERTS, NODE_OPTIONS } });
  worker.on('message', (body) => console.log(body));
} else {
  get(workerData, '/worker', (body) => parentPort.postMessage(body));
}
