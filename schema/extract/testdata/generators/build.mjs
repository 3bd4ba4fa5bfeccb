// Generates code of ../proto/store with code generators that protoc does not run, or that compile with older
// runtimes, and minifies it: node build.mjs OUT writes OUT/CODEGEN.js and OUT/CODEGEN.min.js.
import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as esbuild from "esbuild";
import ts from "typescript";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const out = resolve(process.argv[2]);
const run = promisify(execFile);
const source = join(out, "store.proto");
await mkdir(out, { recursive: true });
await copyFile(join(here, "../proto/store/store.proto"), source);

// protons knows no packages.
const bare = join(out, "bare.proto");
await writeFile(bare, (await readFile(source, "utf8")).replace(/^package.*$/m, ""));

const program = async (path, ...args) => (await run(process.execPath, [join(modules, path), ...args])).stdout;
const transpiled = async (path, target) => ts.transpileModule(await readFile(path, "utf8"), {
  compilerOptions: { target, module: target === ts.ScriptTarget.ES5 ? ts.ModuleKind.CommonJS : ts.ModuleKind.ESNext },
}).outputText;
const protocGenTS = async (target) => {
  await run("protoc", ["-I" + out, "--plugin=protoc-gen-ts=" + join(modules, ".bin/protoc-gen-ts"), "--ts_out=" + out, "store.proto"]);
  return transpiled(join(out, "store.ts"), target);
};

const codegens = {
  "pbf-3": () => program("pbf-3/bin/pbf", source),
  "pbf-4": () => program("pbf-4/bin/pbf", source),
  "pbf-5": () => program("pbf/bin/pbf", source),
  "protocol-buffers": async () => {
    await program("protocol-buffers/bin.js", source, "-o", join(out, "compact.js"));
    return readFile(join(out, "compact.js"), "utf8");
  },
  protons: async () => {
    await program("protons/dist/bin/protons.js", bare, "-o", out);
    return transpiled(join(out, "bare.ts"), ts.ScriptTarget.ES2022);
  },
  "protoc-gen-ts": () => protocGenTS(ts.ScriptTarget.ES2022),
  "protoc-gen-ts-es5": () => protocGenTS(ts.ScriptTarget.ES5),
  "protobufjs-5": () => program("protobufjs-5/bin/pbjs", source, "-t", "commonjs"),
};

for (const [name, generate] of Object.entries(codegens)) {
  const code = await generate();
  await writeFile(join(out, name + ".js"), code);
  const { code: minified } = await esbuild.transform(code, { minify: true });
  await writeFile(join(out, name + ".min.js"), minified);
}
