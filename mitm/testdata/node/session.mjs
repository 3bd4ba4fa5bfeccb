// Calls of all stream kinds by connect-es, with identifiers that it makes: session.mjs BASE-URL connect|grpc|grpc-web 1.1|2
// It prints what it got, without the identifiers.
import { randomUUID } from 'node:crypto';
import { MethodKind, Struct } from '@bufbuild/protobuf';
import { ConnectError, createPromiseClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';

const [baseUrl, protocol, httpVersion] = process.argv.slice(2);
const make = { connect: createConnectTransport, grpc: createGrpcTransport, 'grpc-web': createGrpcWebTransport }[protocol];
const method = (name, kind) => ({ name, I: Struct, O: Struct, kind });
const client = createPromiseClient({
  typeName: 'unwire.test.v1.SessionService',
  methods: {
    unary: method('Unary', MethodKind.Unary),
    count: method('Count', MethodKind.ServerStreaming),
    sum: method('Sum', MethodKind.ClientStreaming),
    talk: method('Talk', MethodKind.BiDiStreaming),
  },
}, make({ baseUrl, httpVersion }));
const id = randomUUID();
const message = (fields) => Struct.fromJson({ id, ...fields });
const show = (m) => JSON.stringify(m.toJson()).replaceAll(id, 'ID');

console.log('unary', show(await client.unary(message({ text: 'hello' }))));
try {
  await client.unary(message({ text: 'fail' }));
} catch (e) {
  console.log('error', ConnectError.from(e).code, ConnectError.from(e).rawMessage);
}
for await (const m of client.count(message({ n: 3 }))) console.log('count', show(m));
console.log('sum', show(await client.sum((async function* () { for (let n = 1; n <= 4; n++) yield message({ n }); })())));
if (httpVersion === '2') {
  let answered;
  const queue = [message({ round: 0 })];
  async function* up() {
    for (let round = 0; round < 10; round++) {
      while (queue.length === 0) await new Promise((resolve) => { answered = resolve; });
      yield queue.shift();
    }
  }
  let round = 0;
  for await (const m of client.talk(up())) {
    console.log('talk', show(m));
    if (++round < 10) {
      queue.push(message({ round }));
      answered?.();
    }
  }
}
