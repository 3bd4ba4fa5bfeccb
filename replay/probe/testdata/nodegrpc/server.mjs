// Serves gen.catalog.Catalog with @grpc/grpc-js, from its .proto file (the first argument). A second file has options:
// cert and key (PEM). It prints its port and that of an HTTP server that tells how often a handler ran.
import { readFileSync } from "node:fs";
import * as http from "node:http";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const options = process.argv[3] ? JSON.parse(readFileSync(process.argv[3])) : {};
const loaded = grpc.loadPackageDefinition(loader.loadSync(process.argv[2]));
let executed = 0;
const server = new grpc.Server();
server.addService(loaded.gen.catalog.Catalog.service, {
  Find: (_, done) => { executed++; done(null, { names: [] }); },
});
const credentials = options.cert
  ? grpc.ServerCredentials.createSsl(null, [{ private_key: Buffer.from(options.key), cert_chain: Buffer.from(options.cert) }])
  : grpc.ServerCredentials.createInsecure();
server.bindAsync("127.0.0.1:0", credentials, (err, port) => {
  if (err) throw err;
  const counter = http.createServer((_, res) => res.end(String(executed)));
  counter.listen(0, "127.0.0.1", () => console.log(port, counter.address().port));
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
