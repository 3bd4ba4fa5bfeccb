// Bundles @livekit/protocol and prints what its own reflection tells, a fact a
// line: node livekit.mjs PACKAGE OUT writes OUT/FORM.js and prints the facts.
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const [name, dir] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url)), out = resolve(dir);
const pkg = await import(name);

const scalar = ["", "DOUBLE", "FLOAT", "INT64", "UINT64", "INT32", "FIXED64", "FIXED32", "BOOL", "STRING", "GROUP", "MESSAGE",
  "BYTES", "UINT32", "ENUM", "SFIXED32", "SFIXED64", "SINT32", "SINT64"];
const json = (s) => s.replace(/_+([a-z]?)/g, (_, c) => c.toUpperCase());
const say = (fact, text) => console.log(fact + "\t" + text);
const seen = new Set();

function typeOf(f) {
  if (f.kind === "scalar") return ["TYPE_" + scalar[f.T], ""];
  return f.kind === "enum" ? ["TYPE_ENUM", "." + f.T.typeName] : ["TYPE_MESSAGE", "." + f.T.typeName];
}

function enumFacts(e) {
  if (seen.has(e.typeName)) return;
  seen.add(e.typeName);
  say("enum " + e.typeName, "alias=" + (new Set(e.values.map((v) => v.no)).size !== e.values.length));
  for (const v of e.values) say(`value ${e.typeName}.${v.name}`, String(v.no));
}

function messageFacts(m) {
  if (seen.has(m.typeName) || m.typeName.startsWith("google.protobuf.")) return;
  seen.add(m.typeName);
  say("message " + m.typeName, "syntax=proto3");
  for (const f of m.fields.list()) {
    let label = f.repeated ? "LABEL_REPEATED" : "LABEL_OPTIONAL", [type, of] = f.kind === "map" ? [] : typeOf(f);
    if (f.kind === "map") {
      const camel = json(f.name), entry = m.typeName + "." + camel[0].toUpperCase() + camel.slice(1) + "Entry";
      [label, type, of] = ["LABEL_REPEATED", "TYPE_MESSAGE", "." + entry];
      say("message " + entry, "syntax=proto3");
      say(`field ${entry}.key`, `1 LABEL_OPTIONAL TYPE_${scalar[f.K]}  json=key`);
      const [vt, vo] = typeOf(f.V);
      say(`field ${entry}.value`, `2 LABEL_OPTIONAL ${vt} ${vo} json=value`);
    }
    const oneof = f.oneof ? " oneof=" + f.oneof.name : f.opt ? ` oneof=_${f.name} optional` : "";
    say(`field ${m.typeName}.${f.name}`, `${f.no} ${label} ${type} ${of} json=${f.jsonName}${oneof}`);
    for (const t of [f.T, f.V?.T]) {
      if (t?.fields) messageFacts(t);
      else if (t?.values) enumFacts(t);
    }
  }
}

for (const v of Object.values(pkg)) {
  if (v?.typeName && v.fields) messageFacts(v);
  else if (v && typeof v === "object") {
    try { enumFacts((await import("@bufbuild/protobuf")).proto3.getEnumType(v)); } catch { /* no enum */ }
  }
}

await mkdir(out, { recursive: true });
const entry = join(out, "entry.mjs");
await writeFile(entry, `import * as all from ${JSON.stringify(name)}; globalThis.all = { ...all };\n`);
const common = { entryPoints: [entry], bundle: true, logLevel: "error", nodePaths: [join(here, "node_modules")] };
await Promise.all([
  esbuild.build({ ...common, format: "esm", outfile: join(out, "esm.js") }),
  esbuild.build({ ...common, format: "iife", minify: true, outfile: join(out, "iife-min.js") }),
  esbuild.build({ ...common, format: "cjs", minify: true, platform: "node", outfile: join(out, "cjs-min.js") }),
]);
