// Serves test.v1.Test of a descriptor set (the first argument) with connect-es
// 1.x, over TLS, HTTP/1.1 and HTTP/2 (a PEM file of a certificate and its key).
import { readFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import * as http2 from "node:http2";
import { createRegistryFromDescriptors, Duration } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";

const service = createRegistryFromDescriptors(readFileSync(process.argv[2])).findService("test.v1.Test");
const impl = {
  say(r) {
    if (r.value.startsWith("bad")) {
      throw new ConnectError("not " + r.value, Code.InvalidArgument, undefined, [new Duration({ seconds: 60n })]);
    }
    return { value: r.value };
  },
  async *count(r) {
    for (let i = 0; i < r.value; i++) yield { value: "message " + i };
  },
  async join(input) {
    const parts = [];
    for await (const r of input) parts.push(r.value);
    return { value: parts.join("+") };
  },
  async *issue(input) {
    const next = input[Symbol.asyncIterator]();
    await next.next();
    for (let i = 0; i < 20; i++) {
      const id = randomUUID();
      yield { value: id };
      const got = await next.next();
      if (got.done || got.value.value !== id) throw new ConnectError("round " + i, Code.FailedPrecondition);
    }
  },
};
const pem = readFileSync(process.argv[3]);
const server = http2.createSecureServer({ cert: pem, key: pem, allowHTTP1: true }, connectNodeAdapter({
  routes: (router) => router.service(service, impl),
}));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
