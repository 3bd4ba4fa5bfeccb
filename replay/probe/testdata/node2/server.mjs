// Serves every method of a descriptor set (a file, the first argument) with
// connect-es 2.x; /executed tells how often a handler ran.
import { readFileSync } from "node:fs";
import * as http from "node:http";
import { create, createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { connectNodeAdapter } from "@connectrpc/connect-node";

const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(process.argv[2])));
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
const handler = connectNodeAdapter({ routes });
const server = http.createServer((req, res) => {
  if (req.url === "/executed") { res.end(String(executed)); return; }
  handler(req, res);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
