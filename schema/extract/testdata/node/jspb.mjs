// Bundles the code that google-protobuf ships for protobuf's own files, as the
// applications that use it do: node jspb.mjs OUT writes OUT/FORM.js.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { rollup } from "rollup";
import resolvePlugin from "@rollup/plugin-node-resolve";
import commonjs from "@rollup/plugin-commonjs";
import { minify } from "terser";
import webpack from "webpack";

const here = dirname(fileURLToPath(import.meta.url)), out = resolve(process.argv[2]);
const names = ["any", "api", "duration", "source_context", "struct", "timestamp", "type", "wrappers"];
await mkdir(out, { recursive: true });
const entry = join(out, "entry.mjs"), modules = join(here, "node_modules");
await writeFile(entry, names.map((n, i) => `import m${i} from "google-protobuf/google/protobuf/${n}_pb.js";`).join("\n") +
  `\nglobalThis.kept = [${names.map((_, i) => "m" + i)}];\n`);

async function rolled() {
  const b = await rollup({ input: entry, logLevel: "silent", plugins: [resolvePlugin({ modulePaths: [modules] }), commonjs()] });
  const { output } = await b.generate({ format: "es" });
  await b.close();
  const { code } = await minify(output[0].code, { module: true, toplevel: true });
  await writeFile(join(out, "rollup-terser.js"), code);
}

function packed() {
  return new Promise((done, failed) => webpack({
    mode: "development", devtool: "eval", entry, output: { path: out, filename: "webpack-eval.js" }, resolve: { modules: [modules] }, target: "web", performance: { hints: false },
  }, (err, stats) => err || stats.hasErrors() ? failed(err ?? new Error(stats.toString("errors-only"))) : done()));
}

await Promise.all([
  esbuild.build({ entryPoints: [entry], bundle: true, minify: true, format: "iife", nodePaths: [modules], logLevel: "error", outfile: join(out, "esbuild.js") }),
  rolled(),
  packed(),
]);
