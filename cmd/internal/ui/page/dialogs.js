// @ts-check
// Dialogs: keys and help, copy as, notes.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";
import { get, post, save } from "./api.js";
import { captureName, change, fail, here, recorded, route, say } from "./state.js";
import { shown } from "./format.js";

/**
 * A dialog. The URL names it (d), so closing it is a change of the URL.
 * @param {{ title: string, children?: any, wide?: boolean }} props
 */
export function Dialog({ title, children, wide }) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const el = /** @type {HTMLDialogElement} */ (box.current);
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    el.showModal();
    return () => {
      el.close();
      before?.focus?.({ preventScroll: true });
    };
  }, []);
  const close = () => change({ d: "" }, true);
  return html`<dialog ref=${box} class=${wide ? "wide" : ""} aria-label=${title} onCancel=${(/** @type {Event} */ e) => { e.preventDefault(); close(); }}
    onClick=${(/** @type {MouseEvent} */ e) => e.target === box.current && close()}>
    <div class="dialog"><header><h2>${title}</h2><button class="quiet" onClick=${close} aria-label="Close">×</button></header>${children}</div></dialog>`;
}

/** Copies a text. @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch (e) {
    fail(e);
  }
}

const help = [
  ["Everywhere", [["?", "this help"], ["g l", "exchanges"], ["g f", "frames of the exchange"], ["g t", "transcript"], ["g s", "schema"], ["g d", "difference"], ["g r", "replay"], ["g p", "probe"], ["/", "filter"], ["c", "copy as …"], ["n", "note"], ["i", "edit the held frame"], ["Esc", "back to the list, or close"]]],
  ["Lists", [["↑ ↓ or j k", "select"], ["PageUp PageDown Home End", "scroll"], ["Enter", "open"], ["m", "mark the exchange"], ["t", "newest first"]]],
  ["Frames", [["Enter", "to the fields"], ["u", "fold or unfold runs of frames"], ["← →", "fold or unfold a field"], ["Space", "fold or unfold"], ["r", "why this type, read as …"], ["x", "hex or text"], ["h", "to the bytes"], ["Tab", "next pane"]]],
];

export function Help() {
  return html`<${Dialog} title="Keys" wide>
    <div class="keysheet">${help.map(([title, keys]) => html`<section><h3>${title}</h3><dl>${/** @type {string[][]} */ (keys).map(([k, what]) => html`<div><dt>${k.split(" ").map((s) => html`<kbd>${s}</kbd> `)}</dt><dd>${what}</dd></div>`)}</dl></section>`)}</div>
    <p class="dim">Each view has its own URL: copy it from the address bar. The filter language is explained by <code>unwire ls --help</code>.</p>
  <//>`;
}

/** A word for a POSIX shell. @param {string} word */
export function quoted(word) {
  return /^[A-Za-z0-9_@%+=:,./#-]+$/.test(word) && !word.startsWith("#") ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function Copy() {
  const { x, f, row } = route.value;
  const at = here();
  const [result, setResult] = useState(/** @type {any} */ ({}));
  const [tool, setTool] = useState("unwire");
  const address = `${captureName()}#${x}${f ? `/${f}` : ""}`;
  useEffect(() => {
    if (tool === "unwire") {
      setResult({ text: `unwire show ${quoted(address)}`, remarks: "" });
      return;
    }
    const abort = new AbortController();
    setResult({ text: "…", remarks: "" });
    get("copy", { ...at, as: tool }, abort.signal).then(setResult, (e) => !abort.signal.aborted && setResult({ text: "", remarks: e.message }));
    return () => abort.abort();
  }, [tool, address]);
  /** @param {string} what @param {any} params */
  const download = (what, params) => save("download", { ...params, what }).catch(fail);
  const exchange = { c: at.c, x };
  return html`<${Dialog} title=${`Copy or save exchange #${x}`} wide>
    <div class="tabs" role="tablist" aria-label="Copy as">${["unwire", "curl", "grpcurl", "buf", "go"].map((t) => html`<button role="tab" aria-selected=${t === tool} aria-controls="copied" onClick=${() => setTool(t)}>${t === "buf" ? "buf curl" : t === "go" ? "Go" : t}</button>`)}</div>
    <div id="copied" role="tabpanel"><pre class="copytext" tabIndex=${0} aria-label="Command">${shown2(result.text)}</pre>
    ${result.remarks && html`<p class="noted">${shown2(result.remarks)}</p>`}
    <button class="main" disabled=${!result.text} onClick=${() => copy(result.text)}>Copy</button></div>
    <h3>Save as a file</h3>
    <p class="buttons">${f && html`<button onClick=${() => download("data", at)}>Frame ${f}</button><button onClick=${() => download("raw", at)}>Frame as sent</button><button onClick=${() => download("json", at)}>Frame as JSON</button>`}
      <button onClick=${() => download("har", exchange)}>Exchange as HAR</button><button onClick=${() => download("jsonl", exchange)}>Exchange as JSON Lines</button>
      <button onClick=${() => download("proto", exchange)}>Inferred .proto</button><button onClick=${() => download("har", { c: at.c })}>Whole capture as HAR</button></p>
    ${row && html`<p class="dim">“Save value” below the fields saves one field.</p>`}
  <//>`;
}

/** Text of several lines: line ends and tabs stay as they are. @param {string} text */
function shown2(text) {
  return (text ?? "").split(/([\n\t])/).map((s) => (s === "\n" || s === "\t" ? s : shown(s))).join("");
}

export function Note() {
  const { x, f, row, c } = route.value;
  const [text, setText] = useState("");
  const [place, setPlace] = useState(String(x));
  const [places, setPlaces] = useState(/** @type {string[][]} */ ([]));
  useEffect(() => {
    const list = [[String(x), `the exchange #${x}`]];
    if (f && route.value.v === "exchange") list.push([`${x}/${f}`, `the frame ${f}`]);
    setPlaces(list);
    setPlace(list[list.length - 1][0]);
    if (f && row !== undefined) {
      get("rows", { ...here(), from: 0, to: 0, row }).then((r) => {
        const s = r.selected;
        if (!s || s.layer) return;
        list.push([`${x}/${f}/${s.path}`, `the field ${s.path} of this frame`]);
        setPlaces([...list]);
        setPlace(list[list.length - 1][0]);
      }, fail);
    }
  }, []);
  useEffect(() => {
    get("notes", { c }).then((r) => {
      const mine = r.notes.find((/** @type {any} */ n) => n.kind === "note" && placeOf(n) === place);
      setText(mine?.value ?? "");
    }, fail);
  }, [place]);
  /** @param {Event} [e] */
  const store = (e) => {
    e?.preventDefault();
    post("notes/put", here(), { place, kind: "note", value: text }).then(() => {
      say(text.trim() ? "Note stored in the capture" : "Note removed");
      recorded.value += " ";
      change({ d: "" }, true);
    }, fail);
  };
  return html`<${Dialog} title="Note">
    <form onSubmit=${store}>
      <label>About <select value=${place} onChange=${(/** @type {any} */ e) => setPlace(e.target.value)}>${places.map(([p, title]) => html`<option value=${p}>${shown(title)}</option>`)}</select></label>
      <textarea aria-label="Note" rows="4" maxlength="16000" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)} autofocus
        onKeyDown=${(/** @type {KeyboardEvent} */ e) => (e.ctrlKey || e.metaKey) && e.key === "Enter" && store()}></textarea>
      <p class="dim">Anybody who gets the capture can read its notes. An empty note is removed.</p>
      <button class="main" type="submit">Store <kbd>Ctrl</kbd> <kbd>Enter</kbd></button>
    </form>
  <//>`;
}

/** Where a note is, as the page names it. @param {any} n */
function placeOf(n) {
  const at = n.address.slice(n.address.lastIndexOf("#") + 1).replace("/part", "");
  return n.path ? `${at}/${n.path}` : at;
}
