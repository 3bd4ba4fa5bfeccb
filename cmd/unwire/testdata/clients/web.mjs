// Uses fetch and WebSocket as a runtime has them: web.mjs ORIGIN
const origin = process.argv[2];
const res = await fetch(`${origin}/echo`, { method: 'POST', body: 'of fetch' });
console.log(res.status, await res.text());

const ws = new WebSocket(`${origin.replace('https', 'wss')}/websocket`);
ws.binaryType = 'arraybuffer';
const messages = ['hello', '', new Uint8Array([0, 1, 255]), 'ä'.repeat(150000)];
await new Promise((resolve, reject) => {
  let n = 0;
  ws.onopen = () => messages.forEach((m) => ws.send(m));
  ws.onerror = (e) => reject(new Error(`WebSocket: ${e.message ?? e.error}`));
  ws.onmessage = ({ data }) => {
    console.log(typeof data === 'string' ? `${data.slice(0, 10)} ${new TextEncoder().encode(data).length}` : new Uint8Array(data).join());
    if (++n === messages.length) ws.close(1000);
  };
  ws.onclose = (e) => { console.log('closed', e.code); resolve(); };
});
process.exit(0);
