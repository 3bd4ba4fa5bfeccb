// The rows of the transport matrix that Node makes with its own clients, as one
// JSON object on stdout: matrix.mjs BASE-URL LANE
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import { once } from 'node:events';

const [base, lane] = process.argv.slice(2);
const web = base.startsWith('https') ? https : http;
const rows = {};
const limit = 60_000;
const volatile = new Set(['date']);

function clean(headers) {
  const out = {};
  for (const k of Object.keys(headers ?? {}).sort()) out[k] = volatile.has(k) ? 'now' : headers[k]; // the proxy keeps no order
  return JSON.stringify(out);
}

async function row(name, f) {
  let timer;
  const late = new Promise((resolve) => { timer = setTimeout(resolve, limit, 'too late'); });
  try {
    rows[name] = await Promise.race([f(), late]);
  } catch (e) {
    rows[name] = `${e.name} ${e.code ?? ''} ${e.message}`;
  }
  clearTimeout(timer);
}

const session = http2.connect(base);
session.on('error', () => {});

// stream makes a request and resolves with everything that it saw.
function stream(headers, body, watch) {
  return new Promise((resolve) => {
    const s = session.request(headers, { endStream: body === undefined });
    let text = '';
    let head = '';
    let seen = '';
    s.setEncoding('utf8');
    s.on('headers', (h) => { seen += `headers ${clean(h)}\n`; });
    s.on('response', (h) => { head = clean(h); });
    s.on('trailers', (h) => { seen += `trailers ${clean(h)}\n`; });
    s.on('data', (d) => { text += d; });
    s.on('error', (e) => { seen += `error ${e.code}\n`; });
    s.on('close', () => resolve(`${head}\n${text.slice(0, 400)} (${text.length})\n${seen}rst ${s.rstCode} aborted ${s.aborted}`));
    watch?.(s);
    if (body) s.end(body);
  });
}

await row('http2 GET', () => stream({ ':path': '/echo?a=%20' }));
await row('http2 POST', () => stream({ ':path': '/echo', ':method': 'POST', 'content-type': 'text/x' }, 'hello'));
await row('http2 HEAD', () => stream({ ':path': '/length', ':method': 'HEAD' }));
await row('http2 empty', () => stream({ ':path': '/status?code=204' }));
await row('http2 1xx', () => stream({ ':path': '/hints' }));
await row('http2 trailers', () => stream({ ':path': '/trailers?body=1' }));
await row('http2 headers first', () => stream({ ':path': '/first', ':method': 'POST' }, null, (s) => s.on('response', () => s.end('headers, then sent'))));
await row('http2 lock-step', () => stream({ ':path': '/copy', ':method': 'POST' }, null, (s) => {
  let n = 0;
  s.on('response', () => s.write('round'));
  s.on('data', () => { if (++n < 8) s.write('round'); else s.end('8 rounds'); });
}));
await row('http2 cut off', () => stream({ ':path': '/cut' }));
await row('http2 refused', () => stream({ ':path': '/early', ':method': 'POST' }, 'x'.repeat(1000)));
await row('http2 cancel', async () => {
  const first = await stream({ ':path': `/wait?key=node-${lane}` }, undefined, (s) => s.once('data', () => s.close(http2.constants.NGHTTP2_CANCEL)));
  return `${first}\n${await stream({ ':path': `/ended?key=node-${lane}` })}`;
});
await row('http2 ping', () => new Promise((resolve, reject) => session.ping((e) => (e ? reject(e) : resolve('pong')))));
await row('http2 50 streams', async () => {
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => stream({ ':path': '/copy', ':method': 'POST' }, `n${i}`)));
  return `${all.filter((a, i) => a.includes(`n${i} `)).length}`;
});
await row('http2 large headers', () => stream({ ':path': '/big-head?n=20000', 'x-big': 'a'.repeat(2048) }).then((s) => `${/x-got":"(\d+)/.exec(s)?.[1]} ${(/x-big":"(b+)/.exec(s) ?? ['', ''])[1].length}`));
session.close();

const agent = new web.Agent({ keepAlive: true });
function request(path, options, body, watch) {
  return new Promise((resolve) => {
    let seen = '';
    const req = web.request(base + path, { agent, ...options });
    req.on('information', (i) => { seen += `information ${i.statusCode} ${clean(i.headers)}\n`; });
    req.on('error', (e) => resolve(`${seen}error ${e.code}`));
    req.on('response', (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (d) => { text += d; });
      res.on('error', (e) => { seen += `error ${e.code}\n`; });
      res.on('close', () => resolve(`${res.httpVersion} ${res.statusCode} ${clean(res.headers)}\n${text.slice(0, 400)} (${text.length})\n${seen}`
        + `trailers ${clean(res.trailers)} complete ${res.complete} reused ${req.reusedSocket}`));
    });
    watch?.(req, (s) => { seen += s; });
    if (!watch) req.end(body);
  });
}

await row('https GET', () => request('/echo?a=%20', {}));
await row('https chunked', () => request('/echo', { method: 'POST', headers: { 'transfer-encoding': 'chunked' } }, 'hello'));
await row('https HEAD', () => request('/length', { method: 'HEAD' }));
await row('https 1xx', () => request('/hints', {}));
await row('https expect-continue', () => request('/after', { method: 'POST', headers: { expect: '100-continue', 'content-length': 2 } }, undefined, (req, see) => {
  req.on('continue', () => { see('continue\n'); req.end('up'); });
  req.flushHeaders();
}));
await row('https trailers', () => request('/trailers?body=1', {}));
await row('https raw headers', () => new Promise((resolve, reject) => web.get(`${base}/repeated`, { agent, headers: { 'X-Repeated': ['b', 'a'] } }, (res) => {
  const lines = [];
  for (let i = 0; i < res.rawHeaders.length; i += 2) {
    const name = res.rawHeaders[i];
    lines.push([name, name === 'Date' ? 'now' : res.rawHeaders[i + 1]]);
  }
  lines.sort((a, b) => (a[0] < b[0] ? -1 : Number(a[0] > b[0]))); // stable: the order within a name stays
  res.resume().on('end', () => resolve(JSON.stringify(lines)));
}).on('error', reject)));
await row('https keep-alive', async () => {
  await request('/length', {});
  return request('/length', {});
});
await row('https cut off', () => request('/cut', {}));
await row('https upgrade', () => new Promise((resolve, reject) => {
  const req = web.request(`${base}/upgrade`, { headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'a2V5' } });
  req.on('error', reject);
  req.on('upgrade', (res, socket, head) => {
    let text = head.toString();
    socket.setEncoding('utf8').on('data', (d) => {
      text += d;
      if (text.endsWith('ping')) socket.end();
    });
    socket.on('end', () => resolve(`${res.statusCode} ${clean(res.headers)} ${text}`));
    socket.write('ping');
  });
  req.end();
}));
agent.destroy();

const coding = { 'accept-encoding': 'gzip' }; // what fetch asks for by itself depends on the scheme
const shown = async (res) => `${res.status} ${clean(Object.fromEntries(res.headers))} ${(await res.text()).slice(0, 400)}`;
await row('fetch GET', async () => shown(await fetch(`${base}/echo`, { headers: coding })));
await row('fetch gzip', async () => shown(await fetch(`${base}/gzip`, { headers: coding })));
await row('fetch POST', async () => shown(await fetch(`${base}/echo`, { method: 'POST', body: 'hello', headers: coding })));
await row('fetch 304', async () => shown(await fetch(`${base}/status?code=304`)));
await row('fetch abort', async () => {
  const stop = new AbortController();
  const res = await fetch(`${base}/wait?key=fetch-${lane}`, { signal: stop.signal });
  setTimeout(() => stop.abort(), 50);
  return res.text();
});
process.stdout.write(JSON.stringify(rows), () => process.exit(0));
