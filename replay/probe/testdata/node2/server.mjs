// Serves every method of a descriptor set (a file, the first argument) with
// connect-es 2.x; /executed tells how often a handler ran.
// A second file has options: auth (lets nobody in), strict (about names in JSON), most (bytes of a message).
import { readFileSync } from "node:fs";
import * as http from "node:http";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";

const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(process.argv[2])));
const options = process.argv[3] ? JSON.parse(readFileSync(process.argv[3])) : {};
const interceptors = options.auth ? [() => async () => { throw new ConnectError("who are you?", Code.Unauthenticated); }] : [];
let executed = 0;

const routes = (router) => {
  for (const type of registry) {
    if (type.kind !== "service") continue;
    const impl = {};
    for (const m of type.methods) {
      switch (m.methodKind) {
        case "unary": impl[m.localName] = () => { executed++; return create(m.output); }; break;
        case "server_streaming": impl[m.localName] = async function* () { executed++; yield create(m.output); }; break;
        case "client_streaming": impl[m.localName] = async (input) => { for await (const _ of input) { executed++; } return create(m.output); }; break;
        default: impl[m.localName] = async function* (input) { for await (const _ of input) { executed++; yield create(m.output); } };
      }
    }
    router.service(type, impl);
  }
};
const handler = connectNodeAdapter({
  routes, interceptors, jsonOptions: { ignoreUnknownFields: !options.strict }, readMaxBytes: options.most ?? 0xffffffff,
});
const server = http.createServer((req, res) => {
  if (req.url === "/executed") { res.end(String(executed)); return; }
  handler(req, res);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
