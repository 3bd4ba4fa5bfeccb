// @ts-check
// A graph of types. The library that places them is loaded when a graph is shown.
import { html, useEffect, useState } from "./vendor.js";
import { get } from "./api.js";
import { counted, shown } from "./format.js";
import { fail, link, recorded, route } from "./state.js";
import { useLoaded } from "./rows.js";

/** @param {string} name */
const short = (name) => name.split(".").pop() ?? "";

/** The types around a message: those that it refers to, and those that refer to it. @param {{ name: string }} props */
export function Graph({ name }) {
  const { c = "0" } = route.value;
  const [dagre, setDagre] = useState(/** @type {typeof import("./dagre.js") | undefined} */ (undefined));
  useEffect(() => {
    import("./dagre.js").then((m) => setDagre(() => /** @type {any} */ (m)), fail);
  }, []);
  const answer = useLoaded((abort) => get("schema/graph", { c, name }, abort), [c, name, recorded.value]);
  if (!answer || !dagre || answer.types.length < 2) return "";
  const g = new dagre.Graph({ multigraph: true });
  g.setGraph({ rankdir: "LR", nodesep: 8, ranksep: 60, marginx: 8, marginy: 8 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const t of answer.types) g.setNode(t.name, { width: short(t.name).length * 7.4 + 18, height: 24 });
  for (const e of answer.edges) g.setEdge(e.from, e.to, {}, e.field);
  dagre.layout(g);
  const { width = 0, height = 0 } = g.graph();
  return html`<h3>Graph of types</h3><div class="graphbox" tabIndex=${0} role="region" aria-label="Graph of types"><svg class="graph" role="group" aria-label=${`${counted(answer.types.length, "type")} and ${counted(answer.edges.length, "field")} between them`} viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height}>
    ${g.edges().map((/** @type {any} */ e) => html`<path d=${curve(g.edge(e).points ?? [])}><title>${shown(`${short(e.v)}.${e.name}: ${short(e.w)}`)}</title></path>`)}
    ${answer.types.map((/** @type {any} */ t) => {
      const n = /** @type {any} */ (g.node(t.name));
      const box = html`<rect x=${n.x - n.width / 2} y=${n.y - 12} width=${n.width} height="24" rx="5" /><text x=${n.x} y=${n.y + 4} text-anchor="middle">${shown(short(t.name))}</text><title>${shown(t.name)}${t.seen || t.enum ? "" : ", never seen"}</title>`;
      const kind = `${t.name === name ? "self" : ""} ${t.seen ? "" : "never"} ${t.enum ? "enum" : ""}`;
      return t.enum ? html`<g class=${kind}>${box}</g>` : html`<a class=${kind} href=${link({ ...route.value, type: t.name, field: "" })}>${box}</a>`;
    })}</svg></div>
    <p class="dim">From left to right: a type, and the types of its fields. Dashed: never seen in the capture.${answer.cut ? ` Only the nearest ${answer.types.length} types are shown.` : ""}</p>`;
}

/** A line through points. @param {{ x: number, y: number }[]} p */
function curve(p) {
  if (p.length < 2) return "";
  let d = `M${p[0].x} ${p[0].y}`;
  for (let i = 1; i < p.length - 1; i++) d += ` Q${p[i].x} ${p[i].y} ${(p[i].x + p[i + 1].x) / 2} ${(p[i].y + p[i + 1].y) / 2}`;
  return `${d} L${p[p.length - 1].x} ${p[p.length - 1].y}`;
}
