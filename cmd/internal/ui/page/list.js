// @ts-check
// The list of exchanges: live, filtered, sorted; notes and marks.
import { html, useEffect, useRef, useState } from "./vendor.js";
import { get, post } from "./api.js";
import { bytes, callName, clock, counted, duration, ending, failed, hostOf, shown } from "./format.js";
import { change, fail, go, held, here, recorded, route, say } from "./state.js";
import { Rows, useLoaded, usePages } from "./rows.js";

/** The columns: title, sort order, class. */
const columns = [
  ["#", "", "num"], ["Time", "time", ""], ["Call", "method", ""], ["Host", "host", ""], ["Result", "code", ""],
  ["↑ frames", "", "num"], ["↓ frames", "", "num"], ["Bytes", "size", "num"], ["Duration", "duration", "num"],
];

/** @param {any} ex */
function cells(ex) {
  const bad = failed(ex);
  return html`
    <span class="num dim">${ex.id}</span>
    <span class="dim">${clock(ex.started)}</span>
    <span class="call">${held.value.filter((h) => h.exchange === ex.id).map((h) => html`<span class="tag doubt" title="Decide about this frame (i)" onClick=${(/** @type {Event} */ e) => { e.stopPropagation(); change({ held: h.id }); }}>held ${h.dir === "up" ? "↑" : "↓"} ${h.frame}</span> `)}${ex.mark && html`<span class="mark" title=${`mark: ${shown(ex.mark)}`}>★<span class="sr">${shown(ex.mark)}</span></span> `}
      <b>${shown(callName(ex))}</b>${ex.error && html` <span class="reason">${shown(ex.error)}</span>`}${ex.note && html` <span class="noted">${shown(ex.note)}</span>`}</span>
    <span class="dim">${shown(hostOf(ex))}</span>
    <span class=${bad ? "bad" : ex.outcome ? "good" : "busy"}>${shown(ending(ex))}</span>
    <span class="num">${ex.frames_up}</span>
    <span class="num">${ex.frames_down}</span>
    <span class="num">${bytes(ex.bytes_up + ex.bytes_down)}</span>
    <span class="num">${ex.outcome ? duration(ex.duration_ms) : "…"}</span>`;
}

export function List() {
  const { c = "0", q = "", sort = "", x } = route.value;
  const [info, setInfo] = useState({ all: 0, damage: "", reading: false, judged: 0 });
  const pages = usePages(async (from, to, abort) => {
    const r = await get("list", { c, filter: q, sort, from, to }, abort);
    setInfo({ all: r.all, damage: r.damage, reading: r.reading, judged: r.judged });
    return { total: r.total, rows: r.exchanges };
  }, [c, q, sort], [recorded.value]);
  // A filter that reads frames is evaluated in steps.
  useEffect(() => {
    if (info.judged < info.all) pages.refresh();
  }, [info]);
  const [at, setAt] = useState(-1);
  const moves = useRef(0);
  const loading = useRef(false);
  useEffect(() => {
    // Effects run after the page was painted, so that a click or key can come first.
    if (loading.current || x !== route.value.x) return undefined;
    if (!x) {
      setAt(-1);
      return undefined;
    }
    if (String(pages.pages.size && at >= 0 ? pages.row(at)?.id : "") === x) return undefined;
    const abort = new AbortController();
    const n = moves.current;
    get("position", { c, x, filter: q, sort }, abort.signal).then((r) => !abort.signal.aborted && n === moves.current && setAt(r.position), () => {});
    return () => abort.abort();
  }, [x, c, q, sort, recorded.value]);

  /** @param {KeyboardEvent} e @param {number} _ @param {any} ex */
  const keys = (e, _, ex) => {
    if (e.key === "m" && ex) {
      mark(ex);
      return true;
    }
    if (e.key === "t") {
      change({ sort: sort === "-time" ? "" : "-time" }, true);
      return true;
    }
    return false;
  };
  /** @param {string} order */
  const sortBy = (order) => change({ sort: sort === order ? `-${order}` : sort === `-${order}` ? "" : order }, true);
  const head = columns.map(([title, order, kind]) => html`<span class=${kind}>${order
    ? html`<button class="sort" tabIndex=${-1} onClick=${() => sortBy(order)}>${title}${sort === order ? " ▲" : sort === `-${order}` ? " ▼" : ""}</button>` : title}</span>`);
  return html`
    <h1 class="sr">Exchanges</h1>
    <${Filter} key=${c} error=${pages.error.value} />
    <${Rows} id="list" class="grid" pages=${pages} height=${26} label="Exchanges" selected=${at} head=${head}
      cell=${cells} rowClass=${(/** @type {any} */ ex) => (failed(ex) ? "failed" : "")} onKey=${keys}
      onMove=${(/** @type {number} */ i, /** @type {any} */ ex) => {
        moves.current++;
        loading.current = !ex;
        setAt(i);
        if (ex) change({ x: ex.id }, true);
      }}
      onOpen=${(/** @type {number} */ _, /** @type {any} */ ex) => ex && go({ v: "exchange", c, q, sort, x: ex.id })}
      empty=${emptyText(q, info.damage)} />
    <footer class="status"><span>${q ? `${counted(pages.total.value, "exchange")} of ${info.all.toLocaleString("en")}` : counted(pages.total.value, "exchange")}</span>
      ${info.judged < info.all ? html`<span class="busy">searching: ${Math.floor((100 * info.judged) / info.all)} %</span>` : info.reading && html`<span class="busy">reading the capture …</span>`}
      ${info.damage && html`<span class="alarm">${shown(info.damage)}</span>`}
      <span class="dim keys"><kbd>↑</kbd><kbd>↓</kbd> select <kbd>Enter</kbd> open <kbd>/</kbd> filter <kbd>m</kbd> mark <kbd>n</kbd> note <kbd>?</kbd> help</span></footer>`;
}

/** Sets or removes the star of an exchange. @param {any} ex */
function mark(ex) {
  post("notes/put", here(), { place: String(ex.id), kind: "mark", value: ex.mark ? "" : "star" }).then(
    () => {
      say(ex.mark ? `Mark of #${ex.id} removed` : `#${ex.id} marked`);
      recorded.value += " ";
    }, fail);
}

const none = { text: "", from: 0, to: 0, candidates: [] };

/**
 * What the list shows if it has no rows.
 * @param {string} filter
 * @param {string} damage why the capture cannot be read as a whole; "" if it can
 */
function emptyText(filter, damage) {
  if (damage) return "No exchange can be read: the capture is damaged.";
  return filter ? "No exchange matches the filter." : "No exchange yet. Exchanges appear here while they are recorded.";
}

/** The filter with its completion and the saved filters. @param {{ error: string }} props */
function Filter({ error }) {
  const { c = "0", q = "", sort = "" } = route.value;
  const [text, setText] = useState(q);
  const [offers, setOffers] = useState(/** @type {{ text: string, from: number, to: number, candidates: any[] }} */ (none));
  const [chosen, setChosen] = useState(-1);
  const [generation, setGeneration] = useState(0);
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  const saved = useLoaded((abort) => get("filters", {}, abort), [generation])?.filters ?? [];
  const typed = useRef(0);
  // What is being typed is ahead of the URL.
  useEffect(() => {
    if (document.activeElement !== box.current) setText(q);
  }, [q]);

  /** @param {string} value */
  const type = (value) => {
    setText(value);
    setChosen(-1);
    clearTimeout(typed.current);
    typed.current = window.setTimeout(() => change({ q: value, sort }, true), 120);
    get("complete", { c, filter: value, at: new TextEncoder().encode(value.slice(0, box.current?.selectionStart ?? value.length)).length }).then((r) => box.current?.value === value && setOffers({ ...r, text: value }), () => {});
  };
  /** @param {any} candidate */
  const take = (candidate) => {
    // Offsets count bytes.
    const raw = new TextEncoder().encode(offers.text);
    const dec = new TextDecoder();
    const next = dec.decode(raw.slice(0, offers.from)) + candidate.text + dec.decode(raw.slice(offers.to));
    setOffers(none);
    type(next);
    box.current?.focus();
  };
  /** @param {KeyboardEvent} e */
  const keydown = (e) => {
    const n = offers.candidates.length;
    if (e.key === "ArrowDown" && n) setChosen((k) => (k + 1) % n);
    else if (e.key === "ArrowUp" && n) setChosen((k) => (k + n - 1) % n);
    else if ((e.key === "Enter" || e.key === "Tab") && chosen >= 0 && offers.candidates[chosen]) take(offers.candidates[chosen]);
    else if (e.key === "Enter" || e.key === "Escape") {
      setOffers(none);
      if (e.key === "Enter") change({ q: text, sort }, true);
      document.getElementById("list")?.focus();
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  /** @param {any[]} list */
  const store = (list) => post("filters/save", {}, list).then(() => setGeneration((g) => g + 1), fail);
  const isSaved = saved.some((/** @type {any} */ s) => s.filter === q);
  const open = offers.candidates.length > 0 && document.activeElement === box.current;
  return html`<div class="filter">
    <div class="field">
      <label for="filter" class="sr">Filter</label>
      <input id="filter" ref=${box} type="search" autocomplete="off" spellcheck=${false} placeholder='Filter: host:api.* method:Run code:!ok duration>2s text:"rate limit" path:1.7="x*"'
        value=${text} role="combobox" aria-expanded=${open} aria-controls="offers" aria-autocomplete="list" aria-invalid=${Boolean(error && q)}
        aria-activedescendant=${open && chosen >= 0 ? `offer-${chosen}` : undefined} aria-describedby=${error ? "filter-error" : undefined}
        onInput=${(/** @type {any} */ e) => type(e.target.value)} onKeyDown=${keydown} onBlur=${() => setTimeout(() => setOffers(none), 150)} />
      <ul id="offers" role="listbox" aria-label="Completions" hidden=${!open}>${offers.candidates.map((o, i) => html`<li id=${`offer-${i}`} role="option" aria-selected=${i === chosen}
        onMouseDown=${(/** @type {Event} */ e) => { e.preventDefault(); take(o); }}><b>${shown(o.text)}</b> <span class="dim">${shown(o.about)}</span></li>`)}</ul>
    </div>
    ${q && !error && !isSaved && html`<button onClick=${() => store([...saved, { name: q, filter: q }])}>Save filter</button>`}
    ${q && html`<button class="quiet" onClick=${() => { clearTimeout(typed.current); setText(""); change({ q: "" }, true); }}>Clear</button>`}
    ${saved.map((/** @type {any} */ s) => html`<span class=${`chip ${s.filter === q ? "on" : ""}`}><button onClick=${() => change({ q: s.filter === q ? "" : s.filter }, true)}>${shown(s.name)}</button><button
      aria-label=${`Remove the saved filter ${shown(s.name)}`} onClick=${() => store(saved.filter((/** @type {any} */ o) => o !== s))}>×</button></span>`)}
    ${error && q && html`<p id="filter-error" class="alarm">${error}</p>`}
  </div>`;
}
