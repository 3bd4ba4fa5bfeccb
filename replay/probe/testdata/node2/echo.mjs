// A connect-es 2.x client that makes a call of each kind and prints what came back:
// echo.mjs DESCRIPTOR-SET URL connect|grpc|grpc-web|connect-http1 NAME
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { ConnectError, createClient } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";

const [set, baseUrl, protocol, prefix] = process.argv.slice(2);
const service = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(set))).getService("unwire.test.v1.EchoService");
const http1 = protocol === "connect-http1";
const create = { connect: createConnectTransport, "connect-http1": createConnectTransport, grpc: createGrpcTransport, "grpc-web": createGrpcWebTransport }[protocol];
const client = createClient(service, create({ baseUrl, httpVersion: http1 ? "1.1" : "2", sendCompression: compressionGzip, compressMinBytes: 1024 }));

const meta = (h) => ["x-head", "x-tail", "x-meta"].map((name) => h?.get(name) ?? "-").join(" ");
async function call(name, f) {
  let header, trailer;
  const options = {
    headers: { "x-case": `${prefix}/${name}` },
    onHeader: (h) => { header = h; },
    onTrailer: (t) => { trailer = t; },
  };
  try {
    await f(options);
  } catch (e) {
    const err = ConnectError.from(e);
    console.log(`${name}: error ${err.code} ${err.rawMessage}, meta ${meta(err.metadata)}`);
    for (const d of err.details) console.log(`  detail ${d.type} ${Buffer.from(d.value ?? []).toString("hex")}`);
  }
  console.log(`end of ${name}: header ${meta(header)}, trailer ${meta(trailer)}`);
}

// A queue whose items are sent as they are pushed.
function queue() {
  const items = [];
  let wake;
  let ended = false;
  return {
    push(v) { items.push(v); wake?.(); },
    end() { ended = true; wake?.(); },
    async* [Symbol.asyncIterator]() {
      for (;;) {
        while (items.length) yield items.shift();
        if (ended) return;
        await new Promise((resolve) => { wake = resolve; });
      }
    },
  };
}

console.log(protocol);
await call("Unary", async (o) => console.log("Unary:", (await client.unary({ value: "hello" }, o)).value));
await call("Big", async (o) => console.log("Big:", (await client.unary({ value: "big ".repeat(100000) }, o)).value.length));
await call("Fail", (o) => client.fail({ value: "x" }, o));
await call("Download", async (o) => {
  for await (const m of client.download({ value: "d" }, o)) console.log("Download:", m.value);
});
await call("FailLater", async (o) => {
  for await (const m of client.failLater({ value: "d" }, o)) console.log("FailLater:", m.value);
});
await call("Upload", async (o) => {
  async function* numbers() { for (const n of ["0", "1", "2"]) yield { value: n }; }
  console.log("Upload:", (await client.upload(numbers(), o)).value);
});
if (!http1) {
  await call("Chat", async (o) => {
    const out = queue();
    let n = 0;
    out.push({ value: `${n}` });
    for await (const m of client.chat(out, o)) {
      console.log("Chat:", m.value);
      if (++n === 200) out.end();
      else out.push({ value: `${n}` });
    }
  });
}
