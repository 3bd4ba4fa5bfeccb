// @ts-check
// Definitions, with what the capture shows of them: seen, never seen, unknown, contradicted.
import { html, useEffect, useState } from "./vendor.js";
import { get } from "./api.js";
import { counted, percent, shown } from "./format.js";
import { change, link, recorded, route } from "./state.js";
import { Rows, useLoaded, usePages } from "./rows.js";
import { shownLines } from "./transcript.js";
import { Graph } from "./graph.js";

/**
 * A name that can continue on the next line behind a dot or slash.
 * @param {string} name
 */
function breakable(name) {
  const most = 300; // longer names are made up, and break anywhere
  return name.length > most ? shown(name) : name.split(/(?<=[./])/).map((part) => html`${shown(part)}<wbr />`);
}

/** The link to the frame of an address such as F.uwc#7/up/0. @param {{ address: string }} props */
export function FrameLink({ address }) {
  const m = /#(\d+)(\/part)?(?:\/((?:up|down)\/\d+))?$/.exec(address);
  if (!m) return html`${shown(address)}`;
  return html`<a href=${link({ v: "exchange", c: route.value.c, x: m[1], part: m[2] ? "1" : "", f: m[3] })}>#${m[1]}${m[3] ? `/${m[3]}` : ""}</a> `;
}

export function Schema() {
  const { c = "0", like = "", type = "", side } = route.value;
  const [report, setReport] = useState(/** @type {any} */ (undefined));
  const pages = usePages(async (from, _, abort) => {
    const r = await get("schema", { c, like }, abort);
    setReport(r);
    return { total: r.types.length, rows: r.types.slice(from, from + 200) };
  }, [c, like], [recorded.value]);
  const [at, setAt] = useState(-1);
  useEffect(() => setAt(report?.types.findIndex((/** @type {any} */ t) => t.name === type) ?? -1), [type, report]);
  const check = report?.check;
  const share = check?.bytes ? check.bytes_explained / check.bytes : 1;
  return html`<header class="head"><div class="title"><h1>Definitions and coverage</h1>
      ${check && html`<span>${counted(check.decoded, "frame")} of ${check.frames.toLocaleString("en")} decoded</span>
        <span><meter min="0" max="1" value=${share} aria-label="Bytes explained">${percent(share)}</meter> ${percent(share)} of the bytes explained</span>
        <span>${check.fields_seen} fields seen, ${check.fields_never_seen} never seen</span>
        <span class=${check.unknown?.length ? "bad" : "good"}>${counted(check.unknown?.length ?? 0, "unknown field")}</span>
        <span class=${check.contradicted?.length ? "bad" : "good"}>${counted(check.contradicted?.length ?? 0, "contradiction")}</span>`}
      <nav class="sub" aria-label="Parts">${[["", "Types"], ["inferred", "Inferred"], ["updates", `Updates${report?.proposals?.length ? ` (${report.proposals.length})` : ""}`]].map(([name, title]) => html`<a href=${link({ ...route.value, side: name })} aria-current=${(side ?? "") === name ? "true" : undefined}>${title}</a>`)}</nav></div></header>
    <div class="split">
      <section class="frames" aria-label="Types"><div class="filter"><input aria-label="Filter types" type="search" placeholder="Filter types" value=${like} onInput=${(/** @type {any} */ e) => change({ like: e.target.value }, true)} /></div>
        <${Rows} id="types" pages=${pages} height=${24} label="Types" selected=${at} empty=${like ? "No type matches." : "There are no definitions. “Inferred” shows the definitions that the capture suggests."}
          cell=${(/** @type {any} */ t) => html`<span class="coverage" title=${`${t.covered} of ${t.fields} fields seen`}><meter min="0" max=${Math.max(1, t.fields)} value=${t.covered} aria-label="Fields seen"></meter></span>
            <span class=${t.seen ? "" : "dim"}>${shown(t.name)}</span>${t.unknown ? html`<span class="tag bad">${t.unknown} unknown</span>` : ""}${t.contradicted ? html`<span class="tag bad">${t.contradicted} contradicted</span>` : ""}<span class="spread"></span><span class="num dim">${t.seen ? `×${t.seen}` : "never seen"}</span>`}
          onMove=${(/** @type {number} */ i, /** @type {any} */ t) => { setAt(i); if (t) change({ type: t.name, side: "", field: "" }, true); }} />
        <footer class="status"><span>${counted(report?.total ?? 0, "type")}${report && report.total > report.types.length ? `, the first ${report.types.length} shown` : ""}</span></footer></section>
      ${side === "inferred" ? html`<${Inferred} declared=${type} />` : side === "updates" ? html`<${Updates} list=${report?.proposals ?? []} />` : html`<${Type} key=${type} name=${type} methods=${check?.methods ?? []} />`}
    </div>`;
}

/** @param {{ name: string, methods: any[] }} props */
function Type({ name, methods }) {
  const { c = "0", field } = route.value;
  const t = useLoaded((abort) => (name ? get("schema/type", { c, name }, abort) : Promise.resolve(undefined)), [c, name, recorded.value]);
  if (!name) {
    return html`<section class="page inner" tabIndex=${0} role="region" aria-label="Methods"><h2>Methods in the capture</h2>
      <table class="names"><thead><tr><th>Method</th><th>Direction</th><th>Type</th><th>Frames</th><th>Bytes explained</th></tr></thead><tbody>${methods.map((m) => html`<tr><td>${breakable(`${m.service}/${m.rpc}`)}</td><td>${m.dir}</td>
        <td>${m.type ? html`<a href=${link({ ...route.value, type: m.type })}>${breakable(m.type)}</a>` : html`<span class="bad">unknown</span>`}</td><td class="num">${m.decoded}/${m.frames}</td><td class="num">${m.bytes ? percent(m.bytes_explained / m.bytes) : ""}</td></tr>`)}</tbody></table></section>`;
  }
  return html`<section class="page inner" tabIndex=${0} role="region" aria-label="Type"><h2>${shown(name)}</h2>
    ${t && html`<p><a href=${link({ v: "list", c, q: `type:${name}` })}>Exchanges with this type</a></p>
      <table class="fields"><thead><tr><th>No.</th><th>Field</th><th>Type</th><th>In the capture</th></tr></thead><tbody>${t.fields.map((/** @type {any} */ f) => html`<tr class=${f.state}><td class="num">${f.number}</td><td>${f.state === "seen" || f.state === "contradicted" ? html`<a href=${link({ ...route.value, field: field === String(f.number) ? "" : f.number })} aria-expanded=${field === String(f.number)} role="button">${shown(f.name)}</a>` : shown(f.name)}</td>
        <td>${f.label === "repeated" ? "repeated " : ""}${f.ref ? html`<a href=${link({ ...route.value, type: f.ref })}>${shown(f.ref)}</a>` : shown(f.type)}</td>
        <td><span class="state">${f.state === "never" ? "never seen" : f.state}</span> ${shown(f.why)} ${(f.frames ?? []).slice(0, 5).map((/** @type {string} */ a) => html`<${FrameLink} address=${a} />`)}</td></tr>${field === String(f.number) && html`<tr><td></td><td colspan="3"><${Examples} name=${name} number=${f.number} /></td></tr>`}`)}</tbody></table>
      <p class="dim">A field's name shows its values in the capture, and the evidence for its type.</p>
      <${Graph} key=${name} name=${name} />
      ${t.references.length > 0 && html`<h3>Referred to by</h3><ul class="refs">${t.references.map((/** @type {string} */ r) => html`<li><a href=${link({ ...route.value, type: r.slice(0, r.lastIndexOf(".")) })}>${shown(r)}</a></li>`)}</ul>`}
      ${t.text && html`<h3>Definition</h3><pre class="proto" tabIndex=${0} aria-label="Definition">${shownLines(t.text)}</pre>`}`}
  </section>`;
}

/** Values that a field has in the capture, and the evidence for its type. @param {{ name: string, number: number }} props */
function Examples({ name, number }) {
  const { c = "0" } = route.value;
  const r = useLoaded((abort) => get("schema/field", { c, name, number }, abort), [c, name, number, recorded.value]);
  if (!r) return html`<p class="dim">Searching …</p>`;
  const { found, explanations } = r;
  const e = explanations[0];
  if (!found.values) return html`<p>${counted(found.messages, "message")} of this type ${found.messages === 1 ? "has" : "have"} no value of the field.</p>`;
  return html`<p>${counted(found.values, "value")} in ${found.with.toLocaleString("en")} of ${counted(found.messages, "message")}${found.cut ? "; not all are listed" : ""}.
      ${e && html` Without definitions it reads as ${e.readings.slice(0, 3).map((/** @type {any} */ g, /** @type {number} */ i) => html`${i ? ", " : " "}<b>${shown(g.type || g.kind)}</b> ${percent(g.p)}`)}.${e.settle ? ` What would decide: ${shown(e.settle)}` : ""}`}</p>
    <table><thead><tr><th>Value</th><th class="num">Times</th><th>First in</th></tr></thead><tbody>${found.examples.map((/** @type {any} */ x) => html`<tr><td><code>${shown(x.text)}</code></td><td class="num">${x.count}</td><td><${FrameLink} address=${x.frame} /> <code class="dim">${shown(x.path)}</code></td></tr>`)}</tbody></table>`;
}

/** What the capture alone says, beside what is declared. @param {{ declared: string }} props */
function Inferred({ declared }) {
  const { c = "0" } = route.value;
  const answer = useLoaded((abort) => get("schema/inferred", { c }, abort), [c, recorded.value]);
  const t = useLoaded((abort) => (declared ? get("schema/type", { c, name: declared }, abort).catch(() => undefined) : Promise.resolve(undefined)), [c, declared]);
  const all = (answer?.files ?? []).map((/** @type {any} */ f) => `// ${f.file}\n${f.text}`).join("\n");
  return html`<section class="page inner" tabIndex=${0} role="region" aria-label="Inferred"><h2>Inferred from the capture alone</h2>
    ${!answer && html`<p class="dim">Inferring …</p>`}${answer && !all && html`<p>There are no protobuf messages in the capture.</p>`}
    <div class=${t?.text ? "besides" : ""}>${all && html`<pre class="proto" tabIndex=${0} aria-label="Inferred definitions">${shownLines(all)}</pre>`}
      ${t?.text && html`<div><h3>Declared: ${shown(declared)}</h3><pre class="proto" tabIndex=${0} aria-label="Declared definition">${shownLines(t.text)}</pre></div>`}</div></section>`;
}

/** The fields that traffic proposes to add, as a diff of each message. @param {{ list: any[] }} props */
function Updates({ list }) {
  /** @type {Map<string, any[]>} */
  const by = new Map();
  for (const p of list) by.set(p.message, [...(by.get(p.message) ?? []), p]);
  return html`<section class="page inner" tabIndex=${0} role="region" aria-label="Updates"><h2>What the capture would add to the definitions</h2>
    ${list.length === 0 && html`<p>Nothing: the definitions have all fields of the capture.</p>`}
    ${[...by].map(([name, fields]) => html`<div class="update"><pre class="proto">${`  message ${shown(name.split(".").pop())} {`}</pre>${fields.map((p) => html`<pre class="proto new">${`+   ${p.label === "singular" ? "" : `${shown(p.label)} `}${shown(p.type)} ${shown(p.element.split(".").pop())} = ${p.number};`}<span class="dim">${`  // ${percent(p.type_p)}, in ${counted(p.seen, "message")}`}${p.note ? `; ${shown(p.note)}` : ""}</span> ${(p.frames ?? []).slice(0, 3).map((/** @type {string} */ a) => html`<${FrameLink} address=${a} />`)}</pre>`)}<pre class="proto">  }</pre></div>`)}
    ${list.length > 0 && html`<p class="dim"><code>unwire schema update</code> writes them into your .proto files, and keeps your names and comments.</p>`}</section>`;
}
