// A client of the package ws that talks in lock step and prints what came back:
// ws.mjs URL plain|deflate
import WebSocket from 'ws';

const [url, compression] = process.argv.slice(2);
const deflate = compression === 'deflate' && { threshold: 0 };
const socket = new WebSocket(url, { perMessageDeflate: deflate });
const sent = ['hello', '{"name":"before"}', Buffer.from([0, 1, 2, 255]), 'big '.repeat(50000), 'drop this', 'bye'];
let next = 0;
socket.on('open', () => socket.send(sent[next++]));
socket.on('message', (data, binary) => {
  console.log(binary ? data.toString('hex') : data.toString().slice(0, 60), data.length);
  if (sent[next] === 'drop this') socket.send(sent[next++]); // it has no answer
  if (next < sent.length) socket.send(sent[next++]);
  else socket.close(1000, 'done');
});
socket.on('ping', () => console.log('ping'));
socket.on('close', (code, reason) => console.log('closed', code, reason.toString(), socket.extensions));
socket.on('error', (err) => console.log('error', err.message));
