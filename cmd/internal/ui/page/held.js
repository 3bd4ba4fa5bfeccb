// @ts-check
// Frames that a recorder holds until the user has decided about them.
import { html, useEffect, useState } from "./vendor.js";
import { APIError, get, post } from "./api.js";
import { bytes, counted, duration, shown } from "./format.js";
import { change, fail, held, route, say } from "./state.js";
import { useLoaded } from "./rows.js";
import { Edit } from "./edit.js";

/** The numbers of the frames about which the user decides in this tab; 0 stands for all. */
const deciding = new Set();

/** Tells the user that the frame of the open panel is not held any more, unless the user has decided that here.
 * @param {any[]} now the frames that are held now @param {boolean} recorded whether the recording still runs */
function note(now, recorded) {
  const gone = held.value.find((h) => String(h.id) === route.value.held && !now.some((n) => n.id === h.id));
  if (!gone) return;
  if (!deciding.has(gone.id) && !deciding.has(0)) say(`Frame ${gone.id} is not held any more: ${recorded ? "it was decided elsewhere, its time is over, or its exchange has ended" : "the recording has ended"}.${gone.edits ? " It was forwarded without your edits." : ""}`, gone.edits > 0);
  change({ held: "" }, true);
}

/** Follows the held frames of a capture. @param {string} c @param {AbortSignal} abort */
async function follow(c, abort) {
  for (let after = ""; !abort.aborted;) {
    try {
      const r = await get("held", { c, after }, abort);
      after = r.state;
      if (abort.aborted) return;
      note(r.held, r.recorded);
      held.value = r.held;
    } catch (e) {
      if (abort.aborted) return;
      if (e instanceof APIError) fail(e);
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

/** Decides about a held frame; 0 for all. @param {number} id @param {string} action */
export function decide(id, action) {
  deciding.add(id);
  post("held/decide", { c: route.value.c ?? "0", id }, { action }).then((r) => {
    const d = r.decided;
    const done = { drop: "dropped", replace: "released as edited" }[/** @type {"drop"} */ (d.action)] ?? "released";
    say(d.action === "release-all" ? `${counted(d.frames ?? 0, "frame")} released` : `Frame ${d.id} ${done}`);
    if (route.value.held === String(id)) change({ held: "" }, true);
  }, fail).finally(() => setTimeout(() => deciding.delete(id), 2000));
}

/** The call of a held frame. @param {any} h */
function nameOf(h) {
  return h.method ? h.method.split(".").pop() : h.url;
}

export function Held() {
  const { c = "0", held: chosen } = route.value;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const abort = new AbortController();
    follow(c, abort.signal);
    return () => {
      abort.abort();
      held.value = [];
    };
  }, [c]);
  useEffect(() => {
    if (!held.value.length) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [held.value.length > 0]);
  if (!held.value.length) return "";
  const open = held.value.find((h) => String(h.id) === chosen);
  return html`<section class="heldframes" aria-label="Held frames">
    <header><b>${counted(held.value.length, "frame")} held</b> <span class="dim">The ${held.value.length === 1 ? "frame waits" : "frames wait"} for your decision.</span> <button onClick=${() => decide(0, "release-all")}>Release all</button></header>
    <ul>${held.value.map((h) => html`<li key=${h.id} class=${h === open ? "selected" : ""}>
      <span class="arrow ${h.dir}">${h.dir === "up" ? "↑" : "↓"}<span class="sr">${h.dir}</span></span> <b>${shown(nameOf(h))}</b>
      <span class="dim">${h.exchange ? `#${h.exchange} ` : ""}frame ${h.frame} · ${bytes(h.len)} · ${h.rule === "intercept" ? "" : `rule ${shown(h.rule)} · `}released in ${duration(Math.max(0, new Date(h.until).getTime() - now))}</span>
      <span class="spread"></span>
      <button aria-expanded=${h === open} onClick=${() => change({ held: h === open ? "" : h.id })}>Edit</button>
      <button onClick=${() => decide(h.id, "release")}>Release${h.edits > 0 ? " as edited" : ""}</button>
      <button onClick=${() => decide(h.id, "drop")}>Drop</button></li>`)}</ul>
    ${open && html`<${Editor} key=${open.id} c=${c} h=${open} />`}
  </section>`;
}

/** @param {{ c: string, h: any }} props */
function Editor({ c, h }) {
  const at = { c, id: h.id };
  const [generation, setGeneration] = useState(0);
  const [error, setError] = useState("");
  const draft = useLoaded((abort) => get("held/rows", { ...at, from: 0, to: 0 }, abort), [h.id, h.edits, generation]);
  /** @param {string} edit "" to discard all */
  const apply = (edit) => post("held/edit", at, { edit }).then(() => {
    setError("");
    setGeneration((g) => g + 1);
  }, (e) => setError(e.message));
  const edits = draft?.edits ?? [];
  return html`<div class="helded"><${Edit} path="held/rows" at=${at} keys=${[c, h.id]} changes=${[generation, h.edits]} edits=${edits} add=${apply} />
    ${error && html`<p class="alarm" role="alert">${shown(error)}</p>`}
    ${edits.length > 0 && html`<p>Edits: ${edits.map((/** @type {string} */ e) => html`<code>${shown(e)}</code> `)}
      <button class="main" onClick=${() => decide(h.id, "release")}>Release as edited (${bytes(draft.len)})</button> <button onClick=${() => apply("")}>Discard the edits</button></p>`}
    ${edits.length === 0 && html`<p class="dim">Choose a field, change its value, and press Enter. Nothing is forwarded before you release the frame.</p>`}
  </div>`;
}
