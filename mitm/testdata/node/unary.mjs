// One connect-es call, for bundling into one file: unary.mjs URL
import { MethodKind, StringValue } from '@bufbuild/protobuf';
import { createPromiseClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';

const unary = { name: 'Unary', I: StringValue, O: StringValue, kind: MethodKind.Unary };
const client = createPromiseClient({ typeName: 'unwire.test.v1.EchoService', methods: { unary } },
  createConnectTransport({ baseUrl: process.argv[2], httpVersion: '2' }));
console.log('answer', (await client.unary({ value: 'hello' })).value);
