// @ts-check
// Why a field is read as it is, and how else it can be read.
import { html, useEffect, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { change, fail, here, recorded, say } from "./state.js";
import { percent, shown } from "./format.js";
import { Dialog } from "./dialogs.js";

/** @param {{ row: any }} props */
export function Reading({ row }) {
  const at = here();
  const [answer, setAnswer] = useState(/** @type {any} */ (undefined));
  const [type, setType] = useState("");
  useEffect(() => {
    get("explain", { ...at, row: row.row }).then(setAnswer, fail);
  }, [row.row]);
  /** @param {string} to */
  const read = (to) => post("readings/choose", at, { frame: at.f, path: row.path, type: to.replaceAll(" ", "-") }).then(() => {
    say(to === "auto" ? `${row.path} is inferred again` : `${row.path} is now read as ${to}; this choice is stored in the capture`);
    recorded.value += " ";
    change({ d: "" }, true);
  }, fail);
  const e = answer?.explanations?.[0];
  return html`<${Dialog} title=${`Field ${shown(row.full)}`} wide>
    ${!answer && html`<p class="dim">Loading …</p>`}
    ${answer && !e && html`<p>Nothing is known about this field.</p>`}
    ${e && html`
      <p class="dim">Evidence of ${e.messages.toLocaleString("en")} messages: the field is in ${e.seen.toLocaleString("en")}, has ${e.occurs.toLocaleString("en")} values, at most ${e.most} in one message.</p>
      ${e.declared && html`<p>Declared as <code>${shown(e.declared)}</code></p>`}
      ${e.chosen && html`<p>A user chose <b>${shown(e.type)}</b>. <button onClick=${() => read("auto")}>Infer again</button></p>`}
      ${e.error && html`<p class="alarm">${shown(e.error)}</p>`}
      ${e.note && html`<p class="noted">${shown(e.note)}</p>`}
      <ol class="readings">${e.readings.map((/** @type {any} */ r) => html`<li>
        <div class="reading"><b>${shown(r.type || r.kind)}</b>${r.type && r.type !== r.kind ? html` <span class="dim">${shown(r.kind)}</span>` : ""}
          <meter min="0" max="1" value=${r.p} aria-label=${`Probability of ${shown(r.type || r.kind)}`}>${percent(r.p)}</meter><span class="num">${percent(r.p)}</span>
          ${answer.choosable && html`<button onClick=${() => read(r.type || r.kind)}>Read as ${shown(r.type || r.kind)}</button>`}</div>
        ${r.why.length > 0 && html`<ul class="why">${r.why.map((/** @type {any} */ w) => html`<li>${shown(w.feature)} <span class="num">${w.weight > 0 ? "+" : ""}${w.weight.toFixed(1)}</span></li>`)}</ul>`}
      </li>`)}</ol>
      ${e.settle && html`<p><b>What would decide:</b> ${shown(e.settle)}</p>`}`}
    ${answer?.choosable && html`<form onSubmit=${(/** @type {Event} */ ev) => { ev.preventDefault(); if (type) read(type); }}>
      <label>Read as <select value=${type} onChange=${(/** @type {any} */ ev) => setType(ev.target.value)}><option value="">another type …</option>${answer.types.map((/** @type {string} */ t) => html`<option value=${t}>${t}</option>`)}</select></label>
      <button type="submit" disabled=${!type}>Read</button></form>`}
  <//>`;
}
