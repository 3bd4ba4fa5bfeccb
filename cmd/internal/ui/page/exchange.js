// @ts-check
// One exchange: its head, the timeline with two lanes, the frames as one line each, and the chosen frame.
import { html, useEffect, useRef, useState } from "./vendor.js";
import { get } from "./api.js";
import { bytes, callName, clock, counted, duration, ending, failed, shown } from "./format.js";
import { change, link, recorded, route } from "./state.js";
import { Rows, useLoaded, usePages } from "./rows.js";
import { Frame } from "./frame.js";

export function Exchange() {
  const { c = "0", x, part, f, all } = route.value;
  const at = { c, x, part };
  const head = useLoaded((abort) => get("exchange", at, abort), [c, x, part, recorded.value]);
  const pages = usePages(async (from, to, abort) => {
    const r = await get("frames", { ...at, all, from, to }, abort);
    return { total: r.total, rows: r.lines };
  }, [c, x, part, all], [recorded.value]);
  const [selected, setSelected] = useState(-1);
  const moves = useRef(0);
  const loading = useRef(false);
  useEffect(() => {
    // Effects run after the page was painted, so that a click or key can come first.
    if (loading.current || f !== route.value.f) return undefined;
    if (!f) {
      setSelected(-1);
      return undefined;
    }
    const here = selected >= 0 ? pages.row(selected) : undefined;
    if (here && frameOf(here) === f) return undefined;
    const abort = new AbortController();
    const n = moves.current;
    get("frames/position", { ...at, f, all }, abort.signal).then((r) => n === moves.current && setSelected(r.position), () => !abort.signal.aborted && setSelected(-1));
    return () => abort.abort();
  }, [c, x, part, f, all, recorded.value]);
  // Something is always shown: the first frame, until another is chosen.
  useEffect(() => {
    const first = pages.row(0);
    if (!f && !route.value.f && first) change({ f: frameOf(first) }, true);
  }, [f, pages.version.value]);
  return html`
    <${Head} head=${head} />
    <${Lanes} at=${at} f=${f} />
    <div class="split">
      <section class="frames" aria-label="Frames">
        <${Rows} id="frames" pages=${pages} height=${24} label="Frames" selected=${selected} cell=${frameCells} rowClass=${frameClass}
          onMove=${(/** @type {number} */ i, /** @type {any} */ row) => { moves.current++; loading.current = !row; setSelected(i); if (row) change({ f: frameOf(row), row: "", layer: "" }, true); }}
          onOpen=${() => document.getElementById("tree")?.focus()} onKey=${frameKeys} empty="No frames." />
        <footer class="status"><span>${head ? counted(head.frames, "frame") : ""}${!all && head && head.lines < head.frames ? ` in ${counted(head.lines, "line")}` : ""}</span>
          <label><input type="checkbox" checked=${!all} onChange=${(/** @type {any} */ e) => change({ all: e.target.checked ? "" : "1" }, true)} /> fold runs</label>${!all && head && head.frames > 1 && !head.folded && html`<span class="dim">${head.exchange.outcome ? "too many frames to fold" : "folded when the stream ends"}</span>`}</footer>
      </section>
      ${f ? html`<${Frame} key=${`${c} ${x} ${part} ${f}`} />` : html`<section class="frame"><p class="empty">Choose a frame.</p></section>`}
    </div>`;
}

/** The first frame of a line, as the URL has it. @param {any} l */
function frameOf(l) {
  return `${l.line.dir}/${l.line.first}`;
}

/** @param {KeyboardEvent} e @param {number} _ @param {any} row */
function frameKeys(e, _, row) {
  // A folded run is unfolded at its first frame.
  if (e.key === "u" && row) {
    change({ all: route.value.all ? "" : "1", f: frameOf(row) }, true);
    return true;
  }
  return false;
}

/** @param {any} l */
function frameClass(l) {
  return `${l.line.dir} ${l.error || (l.end && l.code !== "ok") ? "failed" : ""} ${l.end ? "end" : ""}`;
}

/** @param {any} l */
function frameCells(l) {
  const { line } = l;
  const run = line.last > line.first;
  return html`<span class="arrow" title=${line.dir === "up" ? "client to server" : "server to client"}>${line.dir === "up" ? "↑" : "↓"}<span class="sr">${line.dir}</span></span>
    <span class="num dim">${run ? `${line.first}–${line.last}` : line.first}</span>
    <span class="num dim">${duration(line.t_ms)}</span>
    <span class="num">${bytes(line.bytes)}</span>
    <span class="summary">${l.wait_ms && html`<span class="tag wait" title="time without frames before this frame">waited ${duration(l.wait_ms)}</span> `}${run && html`<span class="tag">×${line.last - line.first + 1}</span> `}${l.tool && html`<span class="tag tool">tool</span> `}${l.end && html`<span class=${`tag ${l.code === "ok" ? "endtag" : "bad"}`}>end of stream${l.code !== "ok" ? `: ${shown(l.code)}` : ""}</span> `}${l.partial && html`<span class="tag bad">truncated</span> `}${l.error && html`<span class="tag bad">error</span> `}${l.notes?.length ? html`<span class="mark" title=${l.notes.map((/** @type {any} */ n) => shown(n.value)).join("; ")}>✎</span> ` : ""}${shown(l.error ? `${line.summary} – ${l.error}` : line.summary)}</span>`;
}

/** @param {{ head: any }} props */
function Head({ head }) {
  const [open, setOpen] = useState(false);
  if (!head) return html`<header class="head"><h1>…</h1></header>`;
  const ex = head.exchange;
  return html`<header class="head">
    <div class="title"><h1>${shown(callName(ex))}</h1>
      <span class=${`pill ${failed(ex) ? "bad" : ex.outcome ? "good" : "busy"}`}>${shown(ending(ex))}</span>
      <span class="dim">${shown(ex.protocol)} · ${shown(ex.codec)} · HTTP ${shown(ex.http)} ${ex.status || ""}</span>
      <span class="dim">${clock(ex.started)} · ${duration(ex.duration_ms)} · ↑ ${bytes(ex.bytes_up)} ↓ ${bytes(ex.bytes_down)}</span>
      <button class="quiet" aria-expanded=${open} onClick=${() => setOpen(!open)}>Headers</button>
      <button class="quiet" onClick=${() => change({ d: "copy" })} title="Copy as … (c)">Copy as …</button>
      <button class="quiet" onClick=${() => change({ d: "note" })} title="Note (n)">Note</button></div>
    <p class="url dim">${shown(ex.url)}</p>
    ${(ex.error || head.message) && html`<p class="alarm">${shown([head.code !== "ok" && head.code, head.message, ex.error].filter(Boolean).join(": "))}</p>`}
    ${head.damage && html`<p class="alarm">${shown(head.damage)}</p>`}
    ${head.notes?.map((/** @type {any} */ n) => html`<p class="noted">${n.kind === "mark" ? "★ " : "✎ "}${shown(n.value)}</p>`)}
    ${head.joined && html`<p class="dim">One stream, split over ${counted(ex.parts?.length ?? 0, "call")}. <a href=${link({ ...route.value, part: "1", f: "", row: "" })}>Show this call alone</a></p>`}
    ${head.head !== 0 && String(head.head) !== String(ex.id) && html`<p class="dim">A part of <a href=${link({ v: "exchange", c: route.value.c, x: head.head })}>#${head.head}</a></p>`}
    ${ex.relations?.map((/** @type {any} */ r) => html`<p class="dim">${shown(r.kind)}: ${r.capture ? "another capture" : html`<a href=${link({ v: "exchange", c: route.value.c, x: r.exchange === ex.id ? r.target : r.exchange })}>#${r.exchange === ex.id ? r.target : r.exchange}</a>`}</p>`)}
    ${open && html`<div class="headers" tabIndex=${0} role="region" aria-label="Headers">${[["Request", head.request_headers], ["Response", head.response_headers], ["Trailers", head.trailers]].map(([title, list]) =>
      list.length > 0 && html`<section><h2>${title}</h2><dl>${list.map((/** @type {string[]} */ h) => html`<div><dt>${shown(h[0])}</dt><dd>${shown(h[1])}</dd></div>`)}</dl></section>`)}</div>`}
  </header>`;
}

/** The timeline: a lane for each direction, to scale in time. @param {{ at: any, f: string | undefined }} props */
function Lanes({ at, f }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const el = /** @type {HTMLElement} */ (box.current);
    const o = new ResizeObserver(() => setWidth(Math.max(100, Math.floor(el.clientWidth))));
    o.observe(el);
    return () => o.disconnect();
  }, []);
  const columns = Math.max(50, Math.floor((width - 70) / 4));
  const data = useLoaded((abort) => (width ? get("lanes", { ...at, columns }, abort) : Promise.resolve(undefined)), [at.c, at.x, at.part, columns, recorded.value]);
  const most = Math.max(1, ...(data?.bins ?? []).map((/** @type {any} */ b) => b.bytes));
  const [dir, seq] = (f ?? "").split("/");
  /** The bin that has the chosen frame. @type {any} */
  const chosen = (data?.bins ?? []).filter((/** @type {any} */ b) => b.dir === dir && b.first <= Number(seq)).pop();
  const inner = Math.max(1, width - 70);
  return html`<div class="lanes" ref=${box}>
    ${data && html`<svg role="img" aria-label=${`Timeline of ${duration(data.duration_ms)}: the frames of the client above, those of the server below`} width=${width} height="64" viewBox=${`0 0 ${width} 64`}>
      <text x="4" y="20">client ↑</text><text x="4" y="46">server ↓</text>
      <line class="axis" x1="62" y1="29" x2=${width - 6} y2="29" />
      ${data.bins.map((/** @type {any} */ b) => {
        const px = 64 + (b.column * inner) / data.columns;
        const h = 4 + 18 * Math.sqrt(b.bytes / most);
        const up = b.dir === "up";
        return html`<rect key=${`${b.dir}${b.column}`} class=${`${b.dir} ${b.error ? "failed" : b.end ? "end" : ""} ${b === chosen ? "chosen" : ""}`} x=${px} y=${up ? 28 - h : 30} width="3" height=${h}
          onClick=${() => change({ f: `${b.dir}/${b.first}`, row: "", layer: "" }, true)}><title>${`${b.dir} ${b.first}: ${counted(b.frames, "frame")}, ${bytes(b.bytes)}${b.error ? ", error" : b.end ? ", end of stream" : ""}`}</title></rect>`;
      })}
      ${[0, 0.25, 0.5, 0.75, 1].map((t) => html`<text class="tick" x=${64 + t * (inner - 6)} y="62" text-anchor=${t === 0 ? "start" : t === 1 ? "end" : "middle"}>${duration(data.duration_ms * t)}</text>`)}
    </svg>`}
  </div>`;
}

