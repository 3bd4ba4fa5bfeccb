// Generates code of ../proto/shaken with several codegens and bundles what uses only a
// nested message, so that esbuild drops its parent where the code lets it:
// node shaken.mjs OUT writes OUT/CODEGEN.js.
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const bin = join(here, "node_modules/.bin");
const proto = join(here, "../proto/shaken");
const out = resolve(process.argv[2]);
const run = promisify(execFile);
const protoc = (...args) => run("protoc", ["-I" + proto, ...args, "shaken.proto"]);
const es1 = "--plugin=protoc-gen-es=" + join(here, "node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es");
const es2 = "--plugin=protoc-gen-es=" + join(here, "node_modules/protoc-gen-es-2/bin/protoc-gen-es");

// What generates, and what the application keeps of it.
const codegens = {
  es1: [(dir) => protoc(es1, "--es_out=" + dir, "--es_opt=target=js"),
    `import { Order_Line } from "./shaken_pb.js"; globalThis.kept = Order_Line;`],
  es1ts: [(dir) => protoc(es1, "--es_out=" + dir, "--es_opt=target=ts"),
    `import { Order_Line } from "./shaken_pb.ts"; globalThis.kept = Order_Line;`],
  es2: [(dir) => protoc(es2, "--es_out=" + dir, "--es_opt=target=js"),
    `import { Order_LineSchema } from "./shaken_pb.js"; globalThis.kept = Order_LineSchema;`],
  pbjs: [(dir) => run(join(bin, "pbjs"), ["-t", "static-module", "-w", "es6", "-o", join(dir, "all.js"), "shaken.proto"], { cwd: proto }),
    `import { shop } from "./all.js"; globalThis.kept = shop.orders.v1.Order.Line;`],
};

for (const [name, [generate, application]] of Object.entries(codegens)) {
  const dir = join(out, "gen", name);
  await mkdir(dir, { recursive: true });
  await generate(dir);
  const entry = join(dir, "entry.mjs");
  await writeFile(entry, application);
  await esbuild.build({
    entryPoints: [entry], outfile: join(out, name + ".js"), bundle: true, minify: true, format: "esm", logLevel: "error",
    nodePaths: [join(here, "node_modules")], alias: name === "es2" ? { "@bufbuild/protobuf": "protobuf-2" } : {},
  });
}
