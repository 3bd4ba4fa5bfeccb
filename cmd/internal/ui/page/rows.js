// @ts-check
// Long lists. Pages fetches rows in pieces and keeps some; Rows paints those that are visible.
import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor.js";
import { fail } from "./state.js";

const pageSize = 200;
const keptPages = 40;

/** Rows that the server has, fetched in pages. */
export class Pages {
  /** @param {(from: number, to: number, abort: AbortSignal) => Promise<{total: number, rows: any[]}>} load */
  constructor(load) {
    this.load = load;
    /** @type {Map<number, any[]>} */
    this.pages = new Map();
    /** @type {Set<number>} */
    this.stale = new Set();
    /** @type {Map<number, AbortController>} */
    this.loading = new Map();
    this.total = signal(0);
    this.ready = signal(false);
    this.error = signal("");
    /** Changes when rows have come. */
    this.version = signal(0);
  }

  /**
   * Returns a row, or undefined while it is loading.
   * @param {number} i
   */
  row(i) {
    const n = Math.floor(i / pageSize);
    const page = this.pages.get(n);
    if (!page || this.stale.has(n)) this.fetch(n);
    return page?.[i - n * pageSize];
  }

  /** @param {number} n */
  async fetch(n) {
    if (this.loading.has(n)) return;
    const abort = new AbortController();
    this.loading.set(n, abort);
    this.stale.delete(n);
    try {
      const { total, rows } = await this.load(n * pageSize, (n + 1) * pageSize, abort.signal);
      if (abort.signal.aborted) return;
      this.pages.delete(n);
      this.pages.set(n, rows);
      for (const old of this.pages.keys()) {
        if (this.pages.size <= keptPages) break;
        this.pages.delete(old);
      }
      this.total.value = total;
      this.error.value = "";
    } catch (e) {
      if (abort.signal.aborted) return;
      this.error.value = e instanceof Error ? e.message : String(e);
    } finally {
      if (this.loading.get(n) === abort) this.loading.delete(n);
      if (!abort.signal.aborted) {
        this.ready.value = true;
        this.version.value++;
      }
    }
  }

  /** Fetches again what is shown: the rows may have changed. */
  refresh() {
    for (const n of this.pages.keys()) this.stale.add(n);
    // Rows that are shown ask for their pages; an empty list has none.
    if (this.total.value === 0) this.fetch(0);
    this.version.value++;
  }

  stop() {
    for (const abort of this.loading.values()) abort.abort();
    this.loading.clear();
  }
}

/**
 * Pages that are made anew when one of keys changes, and refreshed when one of changes does.
 * @param {(from: number, to: number, abort: AbortSignal) => Promise<{total: number, rows: any[]}>} load
 * @param {unknown[]} keys
 * @param {unknown[]} [changes]
 */
export function usePages(load, keys, changes = []) {
  const pages = useMemo(() => new Pages(load), keys);
  const first = useRef(pages);
  useEffect(() => {
    if (first.current === pages && pages.ready.value) pages.refresh();
    else pages.fetch(0);
    first.current = pages;
  }, [pages, ...changes]);
  useEffect(() => () => pages.stop(), [pages]);
  return pages;
}

/** The tallest list that browsers can lay out, in pixels. */
const tallest = 16_000_000;
const overscan = 6;

/**
 * A list of rows of one height, of which only the visible ones are in the document.
 *
 * cell returns the content of a row. onMove is called with the row that becomes the selected one, by
 * keys or a click, and onOpen with the row that Enter or a double click opens.
 * @param {{
 *   pages: Pages, height: number, label: string, selected: number, class?: string, id: string,
 *   cell: (row: any, i: number) => any, onMove: (i: number, row: any) => void, onOpen?: (i: number, row: any) => void,
 *   onKey?: (e: KeyboardEvent, i: number, row: any) => boolean, head?: any, empty?: string, rowClass?: (row: any, i: number) => string,
 *   role?: string, attributes?: (row: any, i: number) => any, reveal?: unknown,
 * }} props
 */
export function Rows(props) {
  const { pages, height, selected, id } = props;
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [view, setView] = useState({ top: 0, height: 600 });
  const atEnd = useRef(false);
  const total = pages.total.value;
  pages.version.value; // paint again when rows come

  const real = total * height;
  const tall = Math.min(real, tallest);
  const scale = real > tall ? (real - view.height) / Math.max(tall - view.height, 1) : 1;
  const first = Math.max(0, Math.floor((view.top * scale) / height) - overscan);
  const count = Math.ceil(view.height / height) + 2 * overscan;
  const last = Math.min(total, first + count);

  useLayoutEffect(() => {
    const el = /** @type {HTMLDivElement} */ (box.current);
    const seen = () => {
      atEnd.current = el.scrollTop > 0 && el.scrollTop + el.clientHeight >= el.scrollHeight - 1;
      setView((v) => (v.top === el.scrollTop && v.height === el.clientHeight ? v : { top: el.scrollTop, height: el.clientHeight || 600 }));
    };
    el.addEventListener("scroll", seen, { passive: true });
    const resized = new ResizeObserver(seen);
    resized.observe(el);
    seen();
    return () => {
      el.removeEventListener("scroll", seen);
      resized.disconnect();
    };
  }, []);

  // A list that is scrolled to its end stays there when it grows.
  useLayoutEffect(() => {
    const el = box.current;
    if (el && atEnd.current) el.scrollTop = el.scrollHeight;
  }, [total]);

  // Keep the selected row in sight when it changes, not when the user scrolls.
  useLayoutEffect(() => {
    const el = box.current;
    if (!el || selected < 0) return;
    const head = /** @type {HTMLElement | null} */ (el.querySelector(".head"))?.offsetHeight ?? 0;
    const top = (selected * height) / scale;
    const room = el.clientHeight - head;
    if (top < el.scrollTop) el.scrollTop = Math.max(0, top - height);
    else if (top + height > el.scrollTop + room) el.scrollTop = top + 2 * height - room;
  }, [selected, total === 0, props.reveal]);

  // Keys can come before the page was painted again, and before the row that they act on was loaded: these wait.
  const now = useRef(selected);
  const awaited = useRef(-1);
  const waiting = useRef(/** @type {KeyboardEvent[]} */ ([]));
  now.current = selected;
  useEffect(() => {
    const row = awaited.current >= 0 ? pages.row(awaited.current) : undefined;
    if (row && awaited.current === now.current) props.onMove(awaited.current, row);
    if (row) awaited.current = -1;
    waiting.current.splice(0).forEach(act);
  }, [pages.version.value]);
  /** @param {number} i */
  const move = (i) => {
    if (total === 0) return;
    const to = Math.max(0, Math.min(total - 1, i));
    const row = pages.row(to);
    now.current = to;
    awaited.current = row ? -1 : to;
    props.onMove(to, row);
  };
  const page = Math.max(1, Math.floor(view.height / height) - 1);
  /** @type {Record<string, number>} */
  const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
  /** Does what a key asks for, now or when its row is loaded. @param {KeyboardEvent} e */
  const act = (e) => {
    const at = now.current;
    const row = at >= 0 ? pages.row(at) : undefined;
    if (!pages.ready.value || (at >= 0 && !row && !(e.key in steps))) {
      if (waiting.current.length < 100) waiting.current.push(e);
    } else if (props.onKey?.(e, at, row)) {
      e.preventDefault();
    } else if (e.key in steps) {
      const step = steps[e.key];
      move(step === Infinity ? total - 1 : step === -Infinity ? 0 : at < 0 ? 0 : at + step);
    } else if (e.key === "Enter" && at >= 0 && props.onOpen) {
      e.preventDefault();
      props.onOpen(at, row);
    }
  };
  /** @param {KeyboardEvent} e */
  const keydown = (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key in steps) e.preventDefault();
    act(e);
  };

  const rows = [];
  for (let i = first; i < last; i++) {
    const row = pages.row(i);
    const top = scale === 1 ? i * height : view.top + i * height - view.top * scale;
    rows.push(html`<div key=${i} id=${`${id}-${i}`} class=${`row ${i === selected ? "selected" : ""} ${row && props.rowClass ? props.rowClass(row, i) : ""}`}
      role="option" aria-selected=${i === selected} aria-posinset=${i + 1} aria-setsize=${total}
      style=${{ top: `${top}px`, height: `${height}px` }} ...${row && props.attributes ? props.attributes(row, i) : {}}
      onClick=${() => row && move(i)} onDblClick=${() => row && props.onOpen?.(i, row)}>
      ${row ? props.cell(row, i) : html`<span class="dim">…</span>`}</div>`);
  }
  const active = selected >= first && selected < last ? `${id}-${selected}` : undefined;
  return html`<div class=${`rows ${props.class ?? ""}`}>
    ${props.head && html`<div class="head" aria-hidden="true">${props.head}</div>`}
    <div class="scroll" ref=${box} id=${id} tabIndex=${0} role=${total > 0 ? props.role ?? "listbox" : "region"} aria-label=${props.label} aria-activedescendant=${active} onKeyDown=${keydown}>
      <div class="space" role="presentation" style=${{ height: `${tall}px` }}>${rows}</div>
      ${pages.error.value ? html`<p class="empty alarm" role="presentation">${pages.error.value}</p>`
        : total === 0 && html`<p class="empty" role="presentation">${pages.ready.value ? props.empty ?? "Nothing." : "Loading …"}</p>`}
    </div>
  </div>`;
}

/**
 * Loads a value when keys change.
 * @template T
 * @param {(abort: AbortSignal) => Promise<T>} load
 * @param {unknown[]} keys
 * @returns {T | undefined}
 */
export function useLoaded(load, keys) {
  const [value, setValue] = useState(/** @type {T | undefined} */ (undefined));
  useEffect(() => {
    const abort = new AbortController();
    load(abort.signal).then((v) => !abort.signal.aborted && setValue(v), (e) => !abort.signal.aborted && fail(e));
    return () => abort.abort();
  }, keys);
  return value;
}
