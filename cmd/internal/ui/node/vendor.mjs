// Makes the libraries of the workbench's page, each as one module: page/vendor.js, and page/dagre.js, which is loaded when a
// graph is shown. Their licences are in page/vendor.txt. Run: npm ci && npm run vendor. A test runs it again and compares.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../page");

/** The modules: their libraries, and what they export. */
const modules = {
  "vendor.js": {
    libraries: ["preact", "htm", "@preact/signals", "@preact/signals-core"],
    entry: `
      import { h, render } from "preact";
      import { useState, useEffect, useLayoutEffect, useRef, useMemo } from "preact/hooks";
      import { signal, batch } from "@preact/signals";
      import htm from "htm";
      const html = htm.bind(h);
      export { render, html, useState, useEffect, useLayoutEffect, useRef, useMemo, signal, batch };`,
  },
  "dagre.js": {
    libraries: ["@dagrejs/dagre", "@dagrejs/graphlib"],
    entry: `
      import { Graph, layout } from "@dagrejs/dagre";
      export { Graph, layout };`,
  },
};

let licences = "The licences of the libraries in vendor.js and dagre.js.\n";
for (const [file, { libraries, entry }] of Object.entries(modules)) {
  const result = await build({
    stdin: { contents: entry, resolveDir: here, sourcefile: `${file}-entry.js` },
    bundle: true, format: "esm", minify: true, legalComments: "none", target: "es2022", write: false, charset: "utf8",
  });
  const names = [];
  for (const name of libraries) {
    const dir = join(here, "node_modules", name);
    const about = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
    names.push(`${name} ${about.version}`);
    licences += `\n----\n\n${name} ${about.version}, ${about.license}, in ${file}\n\n${readFileSync(join(dir, "LICENSE"), "utf8").trim()}\n`;
  }
  writeFileSync(join(target, file), `/*! ${names.join(", ")}. Licences: vendor.txt. Made by ../node/vendor.mjs; do not edit. */\n${result.outputFiles[0].text}`);
}
writeFileSync(join(target, "vendor.txt"), licences);
