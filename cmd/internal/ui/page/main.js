// @ts-check
// The page: its frame, and which view is shown. A view is a module that exports a component; see README.md.
import { html, render, useLayoutEffect, useRef } from "./vendor.js";
import { get, offline, token } from "./api.js";
import { captures, change, fail, follow, go, held, link, message, route } from "./state.js";
import { Help, Copy, Note } from "./dialogs.js";
import { List } from "./list.js";
import { Exchange } from "./exchange.js";
import { Transcript } from "./transcript.js";
import { Schema } from "./schema.js";
import { Diff } from "./diff.js";
import { Replay } from "./replay.js";
import { Held } from "./held.js";
import { Probe } from "./probe.js";
import { shown } from "./format.js";

/**
 * The views: name in the URL, title, the key behind g, and the component.
 * @type {{ name: string, title: string, key: string, view: any, exchange?: boolean }[]}
 */
const views = [
  { name: "list", title: "Exchanges", key: "l", view: List },
  { name: "exchange", title: "Frames", key: "f", view: Exchange, exchange: true },
  { name: "transcript", title: "Transcript", key: "t", view: Transcript, exchange: true },
  { name: "replay", title: "Replay", key: "r", view: Replay, exchange: true },
  { name: "schema", title: "Schema", key: "s", view: Schema },
  { name: "diff", title: "Difference", key: "d", view: Diff },
  { name: "probe", title: "Probe", key: "p", view: Probe },
];

/** The view that the URL names. */
function current() {
  return views.find((v) => v.name === (route.value.v ?? "list")) ?? views[0];
}

/** @param {string} name */
function viewLink(name) {
  const { c, q, sort, x, part, f, row, held: open } = route.value;
  return { v: name, c, q, sort, x, part, f, row, held: open };
}

let prefix = "";

/** Keys that work everywhere. @param {KeyboardEvent} e */
function keydown(e) {
  const at = /** @type {HTMLElement} */ (e.target);
  if (e.ctrlKey || e.metaKey || e.altKey || at.matches("input, textarea, select")) return;
  if (document.querySelector("dialog[open]")) return;
  const { x, v } = route.value;
  if (prefix === "g") {
    prefix = "";
    const to = views.find((w) => w.key === e.key && (!w.exchange || x));
    if (to) {
      e.preventDefault();
      go(viewLink(to.name));
    }
    return;
  }
  /** @type {Record<string, () => void>} */
  const keys = {
    "?": () => change({ d: "help" }),
    g: () => { prefix = "g"; },
    "/": () => {
      const box = /** @type {HTMLInputElement | null} */ (document.querySelector("#filter"));
      if (box) box.focus();
      else go({ ...viewLink("list") });
    },
    Escape: () => {
      if (v && v !== "list") go({ ...viewLink("list"), f: "", row: "" });
    },
    c: () => x && change({ d: "copy" }),
    n: () => x && change({ d: "note" }),
    i: () => held.value.length && change({ held: held.value.some((h) => String(h.id) === route.value.held) ? "" : held.value[0].id }),
  };
  if (keys[e.key] && !e.defaultPrevented) {
    e.preventDefault();
    keys[e.key]();
  }
}

function Page() {
  const { c = "0", x } = route.value;
  const now = current();
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    document.title = `${now.title}${x && now.exchange ? ` #${x}` : ""} – unwire`;
    // The keys act on the view's list as soon as the view is shown.
    if (!document.querySelector("dialog[open]")) /** @type {HTMLElement | null} */ (main.current?.querySelector("[tabindex='0']"))?.focus({ preventScroll: true });
  }, [now.name, x]);
  if (!token) return html`<main class="notice"><h1>unwire</h1><p>The URL has no token. Open the URL that <code>unwire ui</code> printed.</p></main>`;
  const dialog = { help: Help, copy: Copy, note: Note }[/** @type {"help"} */ (route.value.d)];
  return html`
    <header class="bar">
      <a class="brand" href=${link({ c })}>unwire</a>
      ${captures.value.length > 1
        ? html`<select aria-label="Capture" value=${c} onChange=${(/** @type {any} */ e) => go({ c: e.target.value })}>
            ${captures.value.map((name, i) => html`<option value=${String(i)}>${shown(name)}</option>`)}</select>`
        : html`<span class="file" title=${shown(captures.value[0])}>${shown(captures.value[0]?.split("/").pop())}</span>`}
      <nav aria-label="Views">${views.map((v) => !v.exchange || x
        ? html`<a href=${link(viewLink(v.name))} aria-current=${v === now ? "page" : undefined}>${v.title}${v.name === "exchange" && x ? html` <span class="dim">#${x}</span>` : ""}</a>` : "")}</nav>
      <button class="quiet" onClick=${() => change({ d: "help" })} aria-label="Keys and help" title="Keys and help (?)">?</button>
    </header>
    ${offline.value && html`<p class="offline" role="alert">${offline.value}</p>`}
    <${Held} />
    <main ref=${main} class=${`view ${now.name}`}><${now.view} key=${`${now.name} ${c}`} /></main>
    <p class=${`toast ${message.value.alarm ? "alarm" : ""}`} role="status" hidden=${!message.value.text}>${message.value.text}</p>
    ${dialog && html`<${dialog} key=${route.value.d} />`}`;
}

addEventListener("keydown", keydown);
if (token) {
  get("captures").then((r) => {
    captures.value = r.captures;
    follow();
  }, fail);
}
render(html`<${Page} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
