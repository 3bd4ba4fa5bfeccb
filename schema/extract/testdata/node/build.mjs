// Generates code from ../proto with each codegen and bundles it in the forms in
// which such code is shipped: node build.mjs OUT writes OUT/CODEGEN/FORM.js.
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile, readdir, symlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as esbuild from "esbuild";
import { rollup } from "rollup";
import resolvePlugin from "@rollup/plugin-node-resolve";
import commonjs from "@rollup/plugin-commonjs";
import { minify } from "terser";
import webpack from "webpack";

const here = dirname(fileURLToPath(import.meta.url));
const bin = join(here, "node_modules/.bin");
const out = resolve(process.argv[2]);
const proto = join(here, "../proto");
const files = ["acme/base/v1/base.proto", "acme/kitchen/v1/kitchen.proto", "acme/legacy/legacy.proto"];
const run = promisify(execFile);

const protoc = (dir, ...args) => run("protoc", ["-I" + proto, ...args.map((a) => a.replace("DIR", dir)), ...files]);
const pbjs = (dir, ...args) => run(join(bin, "pbjs"), [...args, "-o", join(dir, "all.js"), ...files], { cwd: proto });

const codegens = {
  es1: (dir) => Promise.all([
    protoc(dir, "--plugin=protoc-gen-es=" + join(here, "node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es"), "--es_out=DIR", "--es_opt=target=js"),
    protoc(dir, "--plugin=" + join(bin, "protoc-gen-connect-es"), "--connect-es_out=DIR", "--connect-es_opt=target=js"),
  ]),
  es1ts: (dir) => Promise.all([
    protoc(dir, "--plugin=protoc-gen-es=" + join(here, "node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es"), "--es_out=DIR", "--es_opt=target=ts"),
    protoc(dir, "--plugin=" + join(bin, "protoc-gen-connect-es"), "--connect-es_out=DIR", "--connect-es_opt=target=ts"),
  ]),
  es2: (dir) => protoc(dir, "--plugin=protoc-gen-es=" + join(here, "node_modules/protoc-gen-es-2/bin/protoc-gen-es"), "--es_out=DIR", "--es_opt=target=js"),
  pbts: (dir) => protoc(dir, "--plugin=" + join(bin, "protoc-gen-ts"), "--ts_out=DIR"),
  tsproto: (dir) => protoc(dir, "--plugin=" + join(bin, "protoc-gen-ts_proto"), "--ts_proto_out=DIR", "--ts_proto_opt=esModuleInterop=true"),
  tsgeneric: (dir) => protoc(dir, "--plugin=" + join(bin, "protoc-gen-ts_proto"), "--ts_proto_out=DIR",
    "--ts_proto_opt=outputServices=generic-definitions,outputServices=grpc-js,esModuleInterop=true,oneof=unions"),
  pbjsjson: (dir) => pbjs(dir, "-t", "json-module", "-w", "es6"),
  pbjs: (dir) => pbjs(dir, "-t", "static-module", "-w", "es6"),
};

// Which forms of which codegen: all bundlers for each, and all options for the
// first. Webpack's production mode leaves no names of ts-proto's objects.
const forms = {
  es1: ["esm", "iife-min", "cjs-min", "rollup-terser", "webpack", "webpack-dev"],
  es1ts: ["es5ish", "rollup", "webpack"],
  es2: ["iife-min", "webpack", "webpack-eval"],
  pbts: ["rollup-terser", "webpack"],
  pbjsjson: ["iife-min"],
  pbjs: ["iife-min", "rollup-terser"],
  tsproto: ["rollup-terser", "webpack-dev"],
  tsgeneric: ["iife-min"],
};

async function generated(dir) {
  const list = [];
  for (const e of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (e.isFile() && /\.[jt]s$/.test(e.name)) list.push(join(e.parentPath ?? e.path, e.name));
  }
  return list.sort();
}

// An entry that keeps everything, as an application that uses it all does.
async function entry(dir) {
  const list = await generated(dir);
  const text = list.map((f, i) => `import * as m${i} from ${JSON.stringify(f)};`).join("\n") +
    `\nglobalThis.kept = Object.assign({}, ${list.map((_, i) => "m" + i).join(", ")});\n`;
  const file = join(dir, "entry.mjs");
  await writeFile(file, text);
  return file;
}

// Which runtime of protobuf-es an entry's code is for, by its folder.
const second = (from) => /\/(es2|tsproto|tsgeneric)\//.test(from);
const runtime = "@bufbuild/protobuf", runtime2 = join(here, "node_modules/protobuf-2");
const external = ["@grpc/grpc-js", "rxjs", "rxjs/operators"];
const resolver = (from) => ({
  nodePaths: [join(here, "node_modules")], logLevel: "error", external, alias: second(from) ? { [runtime]: "protobuf-2" } : {},
});

const bundlers = {
  esm: (from, to) => esbuild.build({ ...resolver(from), entryPoints: [from], outfile: to, bundle: true, format: "esm" }),
  "iife-min": (from, to) => esbuild.build({ ...resolver(from), entryPoints: [from], outfile: to, bundle: true, format: "iife", minify: true }),
  "cjs-min": (from, to) => esbuild.build({ ...resolver(from), entryPoints: [from], outfile: to, bundle: true, format: "cjs", minify: true, platform: "node" }),
  es5ish: (from, to) => esbuild.build({ ...resolver(from), entryPoints: [from], outfile: to, bundle: true, format: "iife", target: "es2017", minify: true, keepNames: true }),
  rollup: (from, to) => rolled(from, to),
  "rollup-terser": async (from, to) => {
    await rolled(from, to);
    const { code } = await minify(await readFile(to, "utf8"), { module: true, toplevel: true, compress: { passes: 2 } });
    await writeFile(to, code);
  },
  webpack: (from, to) => packed(from, to, { mode: "production" }),
  "webpack-eval": (from, to) => packed(from, to, { mode: "development", devtool: "eval" }),
  "webpack-dev": (from, to) => packed(from, to, { mode: "development", devtool: false }),
};

async function rolled(from, to) {
  const b = await rollup({
    input: from, logLevel: "silent", external,
    plugins: [{
      name: "runtime",
      resolveId(id, importer) {
        if (!second(from) || !id.startsWith(runtime)) return null;
        return this.resolve("protobuf-2" + id.slice(runtime.length), importer);
      },
    }, resolvePlugin({ modulePaths: [join(here, "node_modules")] }), commonjs()],
  });
  await b.write({ file: to, format: "es" });
  await b.close();
}

function packed(from, to, options) {
  return new Promise((done, failed) => {
    webpack({
      ...options, entry: from, output: { path: dirname(to), filename: to.slice(dirname(to).length + 1) },
      resolve: {
        modules: [join(here, "node_modules")], extensions: [".js", ".mjs"],
        alias: second(from) ? { [runtime]: "protobuf-2" } : {},
      },
      target: "web", externals: external, externalsType: "commonjs",
      optimization: options.mode === "production" ? { concatenateModules: to.includes("es1/") } : {}, performance: { hints: false },
    }, (err, stats) => err || stats.hasErrors() ? failed(err ?? new Error(stats.toString("errors-only"))) : done());
  });
}

// Webpack and Rollup get plain JavaScript.
async function transpiled(dir, plain) {
  const list = await generated(dir);
  await esbuild.build({ logLevel: "error", entryPoints: list, outdir: plain, outbase: dir, format: "esm", target: "es2022" });
}

await Promise.all(Object.entries(codegens).map(async ([name, generate]) => {
  const dir = join(out, "gen", name), plain = join(out, "plain", name);
  await mkdir(dir, { recursive: true });
  await generate(dir);
  await transpiled(dir, plain);
  await mkdir(join(out, name), { recursive: true });
  const ts = await entry(dir), js = await entry(plain);
  await Promise.all(forms[name].map((form) => {
    const from = /rollup|webpack/.test(form) ? js : ts;
    return bundlers[form](from, join(out, name, form + ".js"));
  }));
}));
