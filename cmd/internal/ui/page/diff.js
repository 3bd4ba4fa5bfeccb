// @ts-check
// The difference of two frames, exchanges or captures, by structure and by bytes.
import { html, useState } from "./vendor.js";
import { get } from "./api.js";
import { bytes, counted, shown } from "./format.js";
import { captures, change, route } from "./state.js";
import { useLoaded } from "./rows.js";

/** @param {{ name: string, title: string }} props */
function Side({ name, title }) {
  const r = route.value;
  const at = r[name] ?? "";
  const [text, setText] = useState(at);
  return html`<fieldset><legend>${title}</legend>
    <select aria-label=${`Capture of ${title}`} value=${r[`${name}c`] ?? r.c ?? "0"} onChange=${(/** @type {any} */ e) => change({ [`${name}c`]: e.target.value })}>${captures.value.map((n, i) => html`<option value=${String(i)}>${shown(n.split("/").pop())}</option>`)}</select>
    <input aria-label=${`Exchange or frame of ${title}`} placeholder="7, 7/up/0, or empty for all" value=${text} size="20"
      onInput=${(/** @type {any} */ e) => setText(e.target.value)} onChange=${() => change({ [name]: text.trim() })} /></fieldset>`;
}

/** A value of the contract's change, as text. @param {any} v */
function value(v) {
  if (v === null || v === undefined) return "";
  if (typeof v === "string") return JSON.stringify(v);
  return typeof v === "object" ? JSON.stringify(v) : String(v);
}

/** @param {{ text: string }} props */
function Cut({ text }) {
  const [open, setOpen] = useState(false);
  if (open || text.length <= 300) return html`${shown(text)}`;
  return html`${shown(text.slice(0, 300))}… <button onClick=${() => setOpen(true)}>all</button>`;
}

export function Diff() {
  const r = route.value;
  const own = r.x ? `${r.x}${r.f ? `/${r.f}` : ""}` : "";
  const ac = r.ac ?? r.c ?? "0";
  const bc = r.bc ?? r.c ?? "0";
  const asked = Boolean(r.a && r.b) || (!r.a && !r.b && ac !== bc);
  const frames = /\/(up|down)\/\d+$/.test(r.a ?? "") && /\/(up|down)\/\d+$/.test(r.b ?? "");
  const [error, setError] = useState("");
  const answer = useLoaded((abort) => {
    setError("");
    if (!asked) return Promise.resolve(undefined);
    return get("diff", { a: r.a, ac, b: r.b, bc }, abort).catch((e) => { setError(e.message); });
  }, [r.a, r.b, ac, bc]);
  const all = answer?.changes ?? [];
  const list = r.ignored ? all : all.filter((/** @type {any} */ ch) => !ch.ignored);
  const raw = useLoaded((abort) => (frames ? get("diff/bytes", { a: r.a, ac, b: r.b, bc }, abort).catch(() => undefined) : Promise.resolve(undefined)), [r.a, r.b, ac, bc]);
  return html`<section class="page" tabIndex=${0} role="region" aria-label="Difference"><h1>Difference</h1>
    <div class="sides"><${Side} key=${`a${r.a}`} name="a" title="A" /><${Side} key=${`b${r.b}`} name="b" title="B" />
      <button onClick=${() => change({ a: r.b, b: r.a, ac: bc, bc: ac })}>Swap</button>
      ${own && html`<button onClick=${() => change({ a: own, ac: r.c ?? "0" })}>A = ${own}</button><button onClick=${() => change({ b: own, bc: r.c ?? "0" })}>B = ${own}</button>`}
      <label><input type="checkbox" checked=${Boolean(r.ignored)} onChange=${(/** @type {any} */ e) => change({ ignored: e.target.checked ? "1" : "" })} /> show ignored differences</label></div>
    ${!asked && html`<p class="dim">Choose two frames (7/up/0), two exchanges (7), or two captures (empty).</p>`}
    ${error && html`<p class="alarm">${shown(error)}</p>`}
    ${answer && html`<h2>By structure: ${counted(list.length, "difference")}${list.length < all.length ? html` <span class="dim">and ${all.length - list.length} ignored</span>` : ""}</h2>
      <table class="changes"><thead><tr><th>Change</th><th>Path</th><th>A</th><th>B</th></tr></thead><tbody>${list.map((/** @type {any} */ ch) => html`<tr class=${`${ch.op} ${ch.ignored ? "ignored" : ""}`}>
        <td>${shown(ch.op)}${ch.ignored ? html`<br /><span class="dim">ignored: ${shown(ch.ignored)}</span>` : ""}</td><td><code>${shown(ch.path)}</code>${ch.name ? html`<br /><span class="dim">${shown(ch.name)}</span>` : ""}</td>
        <td class="old"><${Cut} text=${value(ch.old)} /></td><td class="new"><${Cut} text=${value(ch.new)} /></td></tr>`)}</tbody></table>`}
    ${raw && html`<h2>By bytes</h2>${raw.equal ? html`<p>The ${bytes(raw.a_len)} are equal.</p>` : html`<p class="dim">The first ${bytes(raw.head)} and the last ${bytes(raw.tail)} are equal. Between them:</p>
      <div class="bytediff"><${Bytes} title="A" data=${raw.a} at=${raw.head} total=${raw.a_len - raw.head - raw.tail} cls="old" /><${Bytes} title="B" data=${raw.b} at=${raw.head} total=${raw.b_len - raw.head - raw.tail} cls="new" /></div>`}`}
  </section>`;
}

/** Bytes in hexadecimal. @param {{ title: string, data: string, at: number, total: number, cls: string }} props */
function Bytes({ title, data, at, total, cls }) {
  const raw = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  let text = "";
  for (let i = 0; i < raw.length; i += 16) {
    const row = raw.slice(i, i + 16);
    const hex = [...row].map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(48);
    text += `${(at + i).toString(16).padStart(6, "0")}  ${hex} ${[...row].map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : "·")).join("")}\n`;
  }
  return html`<div><h3>${title}: ${bytes(total)}</h3><pre class=${cls} tabIndex=${0} aria-label=${`Bytes of ${title}`}>${text || "no bytes"}${total > raw.length ? "…" : ""}</pre></div>`;
}
