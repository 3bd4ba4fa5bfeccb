// @ts-check
// A request is edited, planned, and sent again to this machine.
import { html, useEffect, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { bytes, counted, shown } from "./format.js";
import { here, route } from "./state.js";
import { useLoaded } from "./rows.js";
import { Edit } from "./edit.js";

export function Replay() {
  const at = here();
  const { x } = route.value;
  const [to, setTo] = useState("");
  const [insecure, setInsecure] = useState(false);
  const [omit, setOmit] = useState(true);
  const [edits, setEdits] = useState(/** @type {string[]} */ ([]));
  const [plan, setPlan] = useState(/** @type {any} */ (undefined));
  const [result, setResult] = useState(/** @type {any} */ (undefined));
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [frame, setFrame] = useState("up/0");
  const head = useLoaded((abort) => get("exchange", { c: at.c, x, part: at.part }, abort), [at.c, x, at.part]);
  const ask = { c: at.c, x, part: at.part };
  const body = { to, edits, insecure, omit_secrets: omit };
  /** @param {string} path */
  const run = (path) => {
    setBusy(true);
    setError("");
    post(path, ask, body).then((r) => (path === "replay/plan" ? setPlan(r) : setResult(r)), (e) => setError(e.message)).finally(() => setBusy(false));
  };
  useEffect(() => {
    setResult(undefined);
    run("replay/plan");
  }, [x, edits, to, insecure, omit]);
  const p = plan?.plan;
  const r = result?.result;
  return html`<section class="page" tabIndex=${0} role="region" aria-label="Replay"><h1>Send #${x} again</h1>
    <form class="sides" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); run("replay/send"); }}>
      <label>Server <input type="url" size="32" value=${to} placeholder=${head ? `as recorded: ${new URL(head.exchange.url, location.href).origin}` : ""} onChange=${(/** @type {any} */ e) => setTo(e.target.value.trim())} /></label>
      <label><input type="checkbox" checked=${insecure} onChange=${(/** @type {any} */ e) => setInsecure(e.target.checked)} /> accept any certificate</label>
      <label><input type="checkbox" checked=${omit} onChange=${(/** @type {any} */ e) => setOmit(e.target.checked)} /> leave out missing secrets</label>
      <button type="submit" class="main" disabled=${busy || Boolean(error) || Boolean(p?.refusal)}>Send</button></form>
    ${error && html`<p class="alarm" role="alert">${shown(error)}</p>`}
    ${p?.refusal && html`<p class="alarm">${shown(p.refusal)}: this page sends to this machine only. Other hosts need <code>unwire ui --live --allow-host</code>.</p>`}
    <div class="editor">
      <div><h2>Fields of <select aria-label="Frame" value=${frame} onChange=${(/** @type {any} */ e) => setFrame(e.target.value)}>${Array.from({ length: head?.exchange.frames_up ?? 1 }, (_, i) => html`<option value=${`up/${i}`}>frame up/${i}</option>`)}</select></h2>
        <${Edit} path="rows" at=${{ ...ask, f: frame }} keys=${[at.c, x, at.part, frame]} edits=${frame === "up/0" ? edits : edits.filter((e) => e.startsWith(`@${frame.slice(3)} `)).map((e) => e.slice(e.indexOf(" ") + 1))} add=${(/** @type {string} */ e) => setEdits([...edits, frame === "up/0" ? e : `@${frame.slice(3)} ${e}`])} />
        <h3>Edits</h3>${edits.length === 0 && html`<p class="dim">Choose a field above, change its value, and press Enter.</p>`}
        <ul class="edits">${edits.map((e, i) => html`<li><code>${shown(e)}</code> <button aria-label=${`Remove the edit ${shown(e)}`} onClick=${() => setEdits(edits.filter((_, k) => k !== i))}>×</button></li>`)}</ul></div>
      <div><h2>Plan</h2>${!p && !error && html`<p class="dim">Planning …</p>`}
        ${p && html`<p><b>${shown(p.method)}</b> <span class="url">${shown(p.url)}</span> <span class="dim">HTTP/${shown(p.http)}</span></p>
          ${p.effects && html`<p class="noted">Effects: ${shown(p.effects)}</p>`}
          ${p.warnings?.map((/** @type {string} */ w) => html`<p class="noted">${shown(w)}</p>`)}
          ${p.refreshed?.length > 0 && html`<p>Refreshed: ${p.refreshed.map((/** @type {string} */ n) => html`<code>${shown(n)}</code> `)}</p>`}
          ${p.secrets?.map((/** @type {any} */ s) => html`<p class="dim">Secret in ${shown(s.where)}: ${s.from ? `from ${shown(s.from)}` : s.omitted || omit ? "left out" : `set ${shown((s.wants ?? []).join(" or "))}`}</p>`)}
          <details><summary>${counted(p.headers?.length ?? 0, "header")}</summary><dl class="headers">${(p.headers ?? []).map((/** @type {any} */ h) => html`<div><dt>${shown(h.name)}</dt><dd>${shown(h.value)}</dd></div>`)}</dl></details>
          ${(p.frames ?? []).map((/** @type {any} */ f) => html`<details><summary>Frame ${f.seq}: ${bytes(f.len)}${f.edited ? html` <span class="tag doubt">edited</span>` : ""}${f.compressed ? html` <span class="tag">compressed</span>` : ""}${f.answers ? html` <span class="dim">after ${shown(f.answers)}</span>` : ""}</summary><pre class="finalbytes" tabIndex=${0} aria-label=${`Final bytes of frame ${f.seq}`}>${hexOf(f.data ?? "")}</pre></details>`)}`}</div>
    </div>
    ${r && html`<h2>Verdict: <span class=${r.verdict === "same" ? "good" : "bad"}>${shown(r.verdict)}</span></h2>
      <p>${[r.code, r.message, r.reason].filter(Boolean).map(shown).join(": ")} <span class="dim">${counted(r.frames_up ?? 0, "frame")} sent, ${r.frames_down ?? 0} received, status ${r.status ?? ""}</span></p>
      ${r.diff?.length > 0 && html`<table class="changes"><thead><tr><th>Change</th><th>Path</th><th>Captured</th><th>Now</th></tr></thead><tbody>${r.diff.filter((/** @type {any} */ d) => !d.ignored).map((/** @type {any} */ d) => html`<tr class=${d.op}><td>${shown(d.op)}</td><td><code>${shown(d.path)}</code></td><td class="old">${shown(JSON.stringify(d.old)?.slice(0, 300))}</td><td class="new">${shown(JSON.stringify(d.new)?.slice(0, 300))}</td></tr>`)}</tbody></table>`}`}
    ${result?.said && html`<p class="dim">${shown(result.said)}</p>`}
  </section>`;
}

/** @param {string} base64 */
function hexOf(base64) {
  const raw = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  let text = "";
  for (let i = 0; i < Math.min(raw.length, 4096); i += 16) text += `${[...raw.slice(i, i + 16)].map((b) => b.toString(16).padStart(2, "0")).join(" ")}\n`;
  return raw.length > 4096 ? `${text}… ${bytes(raw.length - 4096)} more` : text;
}
