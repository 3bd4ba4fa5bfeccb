// @ts-check
// A server's parser is asked about the fields of a request: plan, progress, journal, and what was learned.
import { html, useEffect, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { counted, shown } from "./format.js";
import { fail, here, route } from "./state.js";

export function Probe() {
  const at = here();
  const { x, c } = route.value;
  const [to, setTo] = useState("");
  const [method, setMethod] = useState("");
  const [path, setPath] = useState("");
  const [fields, setFields] = useState("1-50");
  const [like, setLike] = useState(Boolean(x));
  const [plan, setPlan] = useState(/** @type {any} */ (undefined));
  const [error, setError] = useState("");
  const [state, setState] = useState(/** @type {any} */ (undefined));
  const [generation, setGeneration] = useState(0);
  const body = { to, method, path, fields, like };
  useEffect(() => {
    let timer = 0;
    let over = false;
    const poll = () => get("probe/state").then((s) => {
      if (over) return;
      setState(s);
      if (s.running) timer = window.setTimeout(poll, 300);
    }, fail);
    poll();
    return () => { over = true; clearTimeout(timer); };
  }, [generation]);
  /** @param {string} what */
  const ask = (what) => {
    setError("");
    post(what, { c: at.c, x }, body).then((r) => {
      if (what === "probe/plan") setPlan(r.plan);
      setGeneration((g) => g + 1);
    }, (e) => setError(e.message));
  };
  /** @param {string} label @param {string} value @param {(v: string) => void} set @param {string} hint */
  const field = (label, value, set, hint) => html`<label>${label} <input size=${Math.max(8, hint.length - 2)} value=${value} placeholder=${hint} onInput=${(/** @type {any} */ e) => set(e.target.value.trim())} /></label>`;
  const found = state?.result;
  return html`<section class="page" tabIndex=${0} role="region" aria-label="Probe"><h1>Probe a server's parser</h1>
    <p class="dim">Requests that no handler accepts reveal which fields a server's parser knows. This page probes servers on this machine; others need <code>unwire ui --live --allow-host</code>.</p>
    <form class="sides" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); ask("probe/plan"); }}>
      ${field("Server", to, setTo, "http://127.0.0.1:8080")}${field("Method", method, setMethod, "/pkg.Service/Method")}${field("Path", path, setPath, "nested message, such as 1.2")}${field("Fields", fields, setFields, "1-200")}
      ${x && html`<label><input type="checkbox" checked=${like} onChange=${(/** @type {any} */ e) => setLike(e.target.checked)} /> method and headers of #${x}</label>`}
      <button type="submit">Plan</button><button type="button" class="main" disabled=${!plan || state?.running} onClick=${() => ask("probe/start")}>Start</button>
      ${state?.running && html`<button type="button" onClick=${() => post("probe/stop", { c }, {}).catch(fail)}>Stop</button>`}</form>
    ${error && html`<p class="alarm" role="alert">${shown(error)}</p>`}
    ${plan && html`<h2>Plan</h2><p>At most ${counted(plan.budget, "request")} to <code>${shown(plan.url)}</code>${plan.rate ? `, ${plan.rate} per second` : ""}.</p>
      <table><thead><tr><th>Server</th><th>Requests</th><th>What the answers reveal</th></tr></thead><tbody>${(plan.steps ?? []).map((/** @type {any} */ s) => html`<tr><td>${shown(s.runtime)}</td><td>${shown(s.requests)}</td><td>${shown(s.tells)}</td></tr>`)}</tbody></table>
      ${(plan.effects ?? []).map((/** @type {string} */ e) => html`<p class="noted">${shown(e)}</p>`)}`}
    ${state?.started && html`<h2>${state.running ? "Running" : "Ended"}: ${counted(state.requests, "request")}</h2>
      ${state.running && html`<progress aria-label="Progress"></progress>`}
      ${state.said && html`<p class="noted">${state.said.split("\n").map((/** @type {string} */ l) => html`${shown(l.replace(/^unwire: (error: |hint: )?/, ""))}<br />`)}</p>`}
      ${found && html`<h3>Fields found</h3>${!found.fields?.length && html`<p>No field was found, because the server's answers do not reveal fields.</p>`}<table hidden=${!found.fields?.length}><thead><tr><th>No.</th><th>Kind</th><th>Name</th><th>More</th></tr></thead><tbody>${(found.fields ?? []).map((/** @type {any} */ f) => html`<tr><td class="num">${f.number ?? f.n}</td><td>${shown(f.kind ?? f.type)}</td><td>${shown(f.name)}</td><td>${shown(rest(f))}</td></tr>`)}</tbody></table>
        <details><summary>Result as JSON</summary><pre class="proto" tabIndex=${0} aria-label="Result">${shown(JSON.stringify(found))}</pre></details>`}
      <details><summary>Journal, the last ${counted(state.journal.length, "line")}</summary><pre class="proto" tabIndex=${0} aria-label="Journal">${state.journal.map((/** @type {any} */ j) => `${shown(JSON.stringify(j).slice(0, 400))}\n`)}</pre></details>`}
  </section>`;
}

/** What else is known of a field. @param {any} f */
function rest(f) {
  const { number: _n, n: _m, kind: _k, type: _t, name: _a, ...more } = f;
  return Object.entries(more).filter(([, v]) => v !== "" && v !== null && v !== false).map(([k, v]) => `${k}: ${typeof v === "object" ? JSON.stringify(v) : v}`).join(", ");
}
