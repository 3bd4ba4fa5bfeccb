// Serves every method of a descriptor set (a file, the first argument) with a release of
// connect-es 2.x, whose packages the caller has imported; /executed tells how often a handler ran.
// A second file has options: auth (lets nobody in), invalid (refuses every message that was parsed), strict (about names
// in JSON), most (bytes of a message), prefix (of the path), cert and key (PEM).
import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";

export function serve({ Code, ConnectError, FileDescriptorSetSchema, connectNodeAdapter, create, createFileRegistry, fromBinary }) {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(process.argv[2])));
  const options = process.argv[3] ? JSON.parse(readFileSync(process.argv[3])) : {};
  const refuse = (text, code) => () => async () => { throw new ConnectError(text, code); };
  const interceptors = [];
  if (options.auth) interceptors.push(refuse("who are you?", Code.Unauthenticated));
  if (options.invalid) interceptors.push(refuse("validation error: page_size: value must be greater than 0 [int32.gt]", Code.InvalidArgument));
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
    requestPathPrefix: options.prefix,
  });
  const handle = (req, res) => {
    if (req.url === "/executed") { res.end(String(executed)); return; }
    handler(req, res);
  };
  const server = options.cert ? https.createServer({ cert: options.cert, key: options.key }, handle) : http.createServer(handle);
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
  process.stdin.resume();
  process.stdin.on("end", () => process.exit(0));
}
