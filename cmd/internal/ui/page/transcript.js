// @ts-check
// The conversation of an exchange: who said what, with tool calls and results.
import { html, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { counted, percent, shown } from "./format.js";
import { fail, here, link, recorded, route, say } from "./state.js";
import { useLoaded } from "./rows.js";

/** Text of several lines: only line ends stay as they are. @param {string} text */
export function shownLines(text) {
  return String(text ?? "").split("\n").map(shown).join("\n");
}

/** Where a piece is: its frames. @param {{ dir: string, frames: number[], path?: string }} props */
function Frames({ dir, frames, path }) {
  if (!frames?.length) return "";
  const span = frames.length === 1 ? `${frames[0]}` : `${frames[0]}–${frames[frames.length - 1]}`;
  const { c, x, part } = route.value;
  return html`<a class="frames-link" href=${link({ v: "exchange", c, x, part, f: `${dir}/${frames[0]}` })}>${dir === "up" ? "↑" : "↓"} ${span}</a>${path && html` <code class="dim">${shown(path)}</code>`}`;
}

/** A long text, cut until it is opened. @param {{ text: string }} props */
function Long({ text }) {
  const [open, setOpen] = useState(false);
  const most = 4000;
  if (open || text.length <= most) return html`<pre class="said">${shownLines(text)}</pre>`;
  return html`<pre class="said">${shownLines(text.slice(0, most))}…</pre><button onClick=${() => setOpen(true)}>Show all ${text.length.toLocaleString("en")} characters</button>`;
}

/** "This is wrong": the role that a candidate really has. @param {{ candidate: any, roles: string[] }} props */
function Label({ candidate, roles }) {
  const [role, setRole] = useState("");
  return html`<form class="label" onSubmit=${(/** @type {Event} */ e) => {
    e.preventDefault();
    if (role) post("transcript/label", here(), { dir: candidate.dir, path: candidate.path, role }).then((r) => say(r.said.replace(/^unwire: /, "")), fail);
  }}><label>Wrong role? Correct role: <select value=${role} onChange=${(/** @type {any} */ e) => setRole(e.target.value)}><option value="">…</option>${roles.map((r) => html`<option value=${r}>${r.replace("_", " ")}</option>`)}</select></label>
    <button type="submit" disabled=${!role}>Label</button></form>`;
}

/** A tool call with its result. @param {{ tool: any }} props */
function Tool({ tool }) {
  return html`<div class="tool"><p><b>${shown(tool.name || "tool")}</b> <span class="dim">${shown(tool.id)}</span></p>
    ${tool.arguments && html`<${Long} text=${tool.arguments} />`}
    ${tool.result !== undefined && html`<details><summary>Result <${Frames} dir=${tool.result_dir ?? "up"} frames=${tool.result_frames} /></summary><${Long} text=${tool.result} /></details>`}</div>`;
}

export function Transcript() {
  const at = here();
  const answer = useLoaded((abort) => get("transcript", { c: at.c, x: at.x, part: at.part }, abort), [at.c, at.x, at.part, recorded.value]);
  const t = answer?.transcript;
  /** @param {any} turn */
  const body = (turn) => {
    const tool = turn.tool ? t.tools?.[turn.tool - 1] : undefined;
    if (tool) return html`<${Tool} tool=${tool} />`;
    if (turn.role === "thinking") return html`<details><summary>Thinking, ${counted(turn.text.length, "character")}</summary><${Long} text=${turn.text} /></details>`;
    return html`<${Long} text=${turn.text ?? ""} />`;
  };
  return html`<section class="page" tabIndex=${0} role="region" aria-label="Transcript"><h1>Transcript of #${at.x}</h1>
    ${!t && html`<p class="dim">Loading …</p>`}
    ${t?.usage && html`<p class="dim">Tokens: ${t.usage.input ?? "?"} in, ${t.usage.output ?? "?"} out${t.usage.cached ? `, ${t.usage.cached} cached` : ""}${t.usage.frame !== undefined ? html` <${Frames} dir="down" frames=${[t.usage.frame]} path=${t.usage.path} />` : ""}</p>`}
    ${t?.error && html`<p class="alarm">${shown(t.error.code)}: ${shown(t.error.message)}</p>`}
    ${t && !t.turns?.length && html`<p>No conversation was found. The texts below are candidates: a label says what one is.</p>`}
    <ol class="turns">${(t?.turns ?? []).map((/** @type {any} */ turn) => html`<li class=${`turn ${turn.role}`}>
      <p class="who"><b>${shown(turn.role.replace("_", " "))}</b> <${Frames} dir=${turn.dir} frames=${turn.frames} path=${turn.path} /></p>${body(turn)}</li>`)}</ol>
    ${t?.candidates?.length > 0 && html`<h2>Candidates</h2><p class="dim">Every text that was found, with its most likely role. Labels are appended to labels.jsonl; <code>unwire chat fit</code> learns from them.</p>
      <table class="candidates"><thead><tr><th>Role</th><th>Score</th><th>Where</th><th>Text</th><th>Correction</th></tr></thead><tbody>${t.candidates.map((/** @type {any} */ k) => html`<tr>
        <td>${shown(k.role.replace("_", " "))}</td><td class="num">${percent(k.score)}</td><td><${Frames} dir=${k.dir} frames=${k.frames} path=${k.path} /></td>
        <td class="clip">${shown((k.text ?? "").slice(0, 160))}</td><td><${Label} candidate=${k} roles=${answer.roles} /></td></tr>`)}</tbody></table>`}
  </section>`;
}
