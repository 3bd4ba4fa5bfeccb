// Serves test.v1.Test of a descriptor set (the first argument) with connect-es
// 2.x over TLS (a PEM file of a certificate and its key) as an agent's tool loop:
// Say hands out a ticket in a header, Issue takes it and asks for tools, with ids
// in a header, in JSON in a string and in JSON in base64. What is in texts is JSON.
import { readFileSync } from "node:fs";
import { createHash, randomBytes, randomInt, randomUUID } from "node:crypto";
import * as http2 from "node:http2";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";

const service = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(process.argv[2]))).getService("test.v1.Test");
const tickets = new Set();
const want = (what, is, value) => {
  if (JSON.stringify(is) !== JSON.stringify(value)) {
    throw new ConnectError(`${what}: ${JSON.stringify(is)} is not ${JSON.stringify(value)}`, Code.FailedPrecondition);
  }
};
const impl = {
  say(_, context) {
    const ticket = "tk-7" + randomBytes(18).toString("base64url");
    tickets.add(ticket);
    context.responseHeader.set("x-ticket", ticket);
    return { value: "opened" };
  },
  async *issue(input, context) {
    const stream = "st-" + randomBytes(9).toString("hex");
    context.responseHeader.set("x-stream", stream);
    const next = input[Symbol.asyncIterator]();
    const first = JSON.parse((await next.next()).value.value);
    if (!tickets.delete(first.ticket)) throw new ConnectError("no ticket " + first.ticket, Code.NotFound);
    const begin = randomInt(100_000, 900_000);
    for (let i = 0; i < 4; i++) {
      const id = randomUUID(), shard = "sh_" + randomBytes(8).toString("hex");
      const input = JSON.stringify({ query: "word " + i, nonce: randomBytes(8).toString("hex") });
      yield { value: JSON.stringify({ seq: begin + i, call: { id, name: "grep", input }, state: Buffer.from(JSON.stringify({ shard, n: i })).toString("base64") }) };
      const got = await next.next();
      if (got.done) throw new ConnectError("the client left in round " + i, Code.Aborted);
      const answer = JSON.parse(got.value.value);
      want("stream", answer.stream, stream);
      want("call", answer.call, id.replaceAll("-", ""));
      want("ack", answer.ack, [begin, begin + i]);
      want("shard", answer.shard, shard);
      want("digest", answer.digest, createHash("sha256").update(input).digest("hex"));
    }
    yield { value: JSON.stringify({ done: true }) };
  },
};
const pem = readFileSync(process.argv[3]);
const server = http2.createSecureServer({ cert: pem, key: pem, allowHTTP1: true }, connectNodeAdapter({
  routes: (router) => router.service(service, impl),
}));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
