// @ts-check
// One frame: its tree beside its bytes and its text. A row and its bytes are chosen together.
import { html, useEffect, useMemo, useRef, useState } from "./vendor.js";
import { get, save } from "./api.js";
import { bytes, duration, percent, shown } from "./format.js";
import { change, fail, here, recorded, route } from "./state.js";
import { Rows, useLoaded, usePages } from "./rows.js";
import { Reading } from "./reading.js";

export function Frame() {
  const { f = "", row, tab = "hex" } = route.value;
  const at = here();
  const info = useLoaded((abort) => get("frame", at, abort), [at.c, at.x, at.part, f, recorded.value]);
  const [closed, setClosed] = useState(/** @type {number[]} */ ([]));
  const [chosen, setChosen] = useState(/** @type {any} */ (undefined));
  const selected = row === undefined ? -1 : Number(row);
  const tree = usePages(async (from, to, abort) => {
    const r = await get("rows", { ...at, from, to, closed: closed.join(".") }, abort);
    return { total: r.total, rows: r.rows };
  }, [at.c, at.x, at.part, f, closed], [recorded.value]);
  const [position, setPosition] = useState(-1);
  useEffect(() => {
    // Effects run after the page was painted, so that a click or key can come first.
    if (row !== route.value.row) return undefined;
    if (selected < 0) {
      setPosition(-1);
      setChosen(undefined);
      return undefined;
    }
    const abort = new AbortController();
    get("rows", { ...at, from: 0, to: 0, closed: closed.join("."), row: selected }, abort.signal).then((r) => {
      setPosition(r.position ?? -1);
      setChosen(r.selected);
    }, () => {});
    return () => abort.abort();
  }, [at.c, at.x, at.part, f, selected, closed, recorded.value]);

  const layer = chosen?.layer ?? 0;
  const choose = (/** @type {number} */ r) => change({ row: r }, true);
  /** @param {any} r @param {boolean} [open] */
  const fold = (r, open) => {
    const is = closed.includes(r.row);
    if (!r.inside || open === !is) return;
    setClosed(is ? closed.filter((k) => k !== r.row) : [...closed, r.row]);
  };
  /** @param {KeyboardEvent} e @param {number} i @param {any} r */
  const keys = (e, i, r) => {
    r ??= chosen; // while rows are loading
    if (!r) return false;
    if (e.key === "ArrowRight") {
      if (closed.includes(r.row)) fold(r, true);
      else if (r.inside && tree.row(i + 1)) choose(tree.row(i + 1).row);
      return true;
    }
    if (e.key === "ArrowLeft") {
      if (r.inside && !closed.includes(r.row)) fold(r, false);
      else if (r.parent >= 0) choose(r.parent);
      return true;
    }
    if (e.key === " ") {
      fold(r);
      return true;
    }
    if (e.key === "r" && r.field) {
      change({ d: "reading" });
      return true;
    }
    if (e.key === "x") {
      change({ tab: tab === "hex" ? "text" : "hex" }, true);
      return true;
    }
    if (e.key === "h") {
      document.getElementById("bytes")?.focus();
      return true;
    }
    return false;
  };
  const l = info?.frame;
  const layers = info?.layers ?? [];
  return html`<section class="frame" aria-label="Frame">
    <header class="framehead">
      <h2>${f.replace("/", " ")}</h2>
      ${l && html`<span class="dim">${duration(l.t_ms)} · ${bytes(info.raw_len)}${l.compressed ? ` ${shown(l.encoding)} → ${bytes(info.data_len)}` : ""}${l.type ? html` · <b>${shown(l.type)}</b>` : ""}</span>`}
      ${l?.end && html`<span class="tag endtag">end of stream</span>`}
      <span class="spread"></span>
      <${SaveMenu} />
    </header>
    ${l?.error && html`<p class="alarm">${shown(l.error)}</p>`}
    ${l?.status && html`<p class="alarm">${shown(l.status.code)}: ${shown(l.status.message)}</p>`}
    ${l?.notes?.map((/** @type {any} */ n) => html`<p class="noted">${n.kind === "mark" ? "★" : "✎"} ${n.path ? html`<code>${shown(n.path)}</code> ` : ""}${shown(n.value)}</p>`)}
    <div class="panes">
      <${Rows} id="tree" class="tree" pages=${tree} height=${22} label="Fields" selected=${position}
        cell=${(/** @type {any} */ r) => treeCells(r, closed, layers, () => fold(r))} onKey=${keys}
        onMove=${(/** @type {number} */ i, /** @type {any} */ r) => { setPosition(i); if (r) { setChosen(r); choose(r.row); } }} onOpen=${(/** @type {number} */ _, /** @type {any} */ r) => r?.field && change({ d: "reading" })}
        empty=${info ? (info.data_len ? "No fields: the payload is neither a protobuf message nor JSON." : "The payload is empty.") : "Loading …"} />
      <div class="bytespane">
        <div class="tabs" role="tablist" aria-label="Bytes">
          ${["hex", "text"].map((t) => html`<button role="tab" id=${`tab-${t}`} aria-controls="bytespanel" aria-selected=${tab === t} tabIndex=${tab === t ? 0 : -1} onClick=${() => change({ tab: t === "hex" ? "" : t }, true)}>${t === "hex" ? "Hex" : "Text"}</button>`)}
          <span class="dim">${layer ? `${shown(layers[layer]?.path)} (${shown(layers[layer]?.encoding || layers[layer]?.form)}) · ` : ""}${bytes(layers[layer]?.len ?? info?.data_len ?? 0)}</span>
          <span class="legend" aria-hidden="true"><i class="key"></i>key <i class="length"></i>length <i class="value"></i>value</span>
        </div>
        <div id="bytespanel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>${tab === "text"
          ? html`<${Text} key=${layer} layer=${layer} chosen=${chosen} choose=${choose} />`
          : html`<${Hex} key=${layer} layer=${layer} chosen=${chosen} choose=${choose} />`}</div>
      </div>
    </div>
    <${Chosen} row=${chosen} />
    ${route.value.d === "reading" && chosen?.field && html`<${Reading} row=${chosen} />`}
  </section>`;
}

/** @param {any} r @param {number[]} closed @param {any[]} layers @param {() => void} fold */
function treeCells(r, closed, layers, fold) {
  const f = r.field;
  const doubt = f && !f.chosen && f.p < 0.9 && f.wire !== "garbage";
  const opens = r.opens ? layers[r.opens] : undefined;
  return html`<span class="indent" style=${{ width: `${r.depth * 14}px` }}></span>
    <span class="twist" onClick=${(/** @type {Event} */ e) => { e.stopPropagation(); fold(); }} aria-hidden="true">${r.inside ? (closed.includes(r.row) ? "▸" : "▾") : ""}</span>
    <span class="name">${f ? html`<b>${f.wire === "garbage" ? "?" : f.n}</b>${f.name ? html` ${shown(f.name)}` : ""}` : html`<b>${shown(r.name)}</b>`}</span>
    <span class="type">${shown(f ? f.symbol ? f.type : f.type || f.kind : r.kind)}${f?.chosen ? html`<span class="tag" title="A user chose this type">chosen</span>` : ""}${doubt ? html`<span class="tag doubt" title="The type is not certain: press r">${percent(f.p)}</span>` : ""}${f?.shape ? html`<span class="tag">${shown(f.shape)}</span>` : ""}${f?.form && !opens ? html`<span class="tag">${shown(f.form)}</span>` : ""}${opens ? html`<span class="tag layer">${shown([opens.encoding, opens.form].filter(Boolean).join(" → "))}</span>` : ""}</span>
    <span class=${`value ${valueClass(r)}`}>${f?.symbol ? html`${shown(f.symbol)} <span class="dim">${shown(r.text)}</span>` : shown(r.text)}${r.cut ? html`<span class="dim"> … ${bytes(r.end - r.val)}</span>` : ""}${f?.error ? html` <span class="alarm">${shown(f.error)}</span>` : ""}</span>`;
}

/** @param {any} r */
function valueClass(r) {
  const kind = r.field ? r.field.kind : r.kind;
  return kind === "string" ? "str" : kind === "bytes" ? "byt" : "num";
}

/** What is below the panes: the chosen field, with its whole value on request. @param {{ row: any }} props */
function Chosen({ row }) {
  const [whole, setWhole] = useState("");
  useEffect(() => setWhole(""), [row?.row]);
  if (!row) return html`<footer class="status chosen"><span class="dim keys"><kbd>Enter</kbd> fields <kbd>←</kbd><kbd>→</kbd> fold <kbd>r</kbd> why this type <kbd>x</kbd> hex or text <kbd>h</kbd> bytes <kbd>Esc</kbd> list</span></footer>`;
  return html`<footer class="status chosen">
    <code>${shown(row.full)}</code><span class="dim">${row.off}–${row.end} (${bytes(row.end - row.off)})</span>
    ${row.field && html`<button onClick=${() => change({ d: "reading" })}>Why ${shown(row.field.type || row.field.kind)}? <kbd>r</kbd></button>`}
    ${row.cut && html`<button onClick=${() => get("value", { ...here(), row: row.row }).then((r) => setWhole(r.text), fail)}>Show the whole value</button>`}
    <button class="quiet" onClick=${() => save("value", { ...here(), row: row.row, download: 1 }).catch(fail)}>Save value</button>
    ${whole && html`<pre class="whole" tabIndex=${0} aria-label="Whole value">${shown(whole)}</pre>`}
  </footer>`;
}

function SaveMenu() {
  /** @param {string} what */
  const one = (what) => save("download", { ...here(), what }).catch(fail);
  return html`<span class="group" role="group" aria-label="Save this frame"><button class="quiet" onClick=${() => one("data")}>Save</button><button class="quiet" onClick=${() => one("raw")}>as sent</button><button class="quiet" onClick=${() => one("json")}>JSON</button></span>`;
}

const hexColumns = 16;

/**
 * The parts of a row of bytes: consecutive bytes of one owner and class.
 * @param {Uint8Array} data @param {any[]} spans @param {number} from @param {number} base @param {any} chosen
 */
function parts(data, spans, from, base, chosen) {
  /** @type {{ from: number, to: number, row: number, cls: string }[]} */
  const out = [];
  let k = spans.findIndex((s) => s.to > base + from);
  const end = Math.min(from + hexColumns, data.length);
  for (let i = from; i < end;) {
    const off = base + i;
    while (k >= 0 && k < spans.length && spans[k].to <= off) k++;
    const s = k >= 0 && k < spans.length && spans[k].from <= off ? spans[k] : undefined;
    const next = s ? s.to : k >= 0 && k < spans.length ? spans[k].from : Infinity;
    let to = Math.min(end, next - base);
    // The chosen row's bytes have edges of their own.
    if (chosen) for (const edge of [chosen.off, chosen.end]) if (edge > off && edge - base < to) to = edge - base;
    const lit = chosen && off >= chosen.off && off < chosen.end;
    out.push({ from: i, to, row: s?.row ?? -1, cls: `${s?.class ?? ""} ${lit ? "lit" : ""}` });
    i = to;
  }
  return out;
}

/** @param {{ layer: number, chosen: any, choose: (row: number) => void }} props */
function Hex({ layer, chosen, choose }) {
  const at = here();
  const perPage = 200 * hexColumns;
  const pages = usePages(async (from, to, abort) => {
    const r = await get("bytes", { ...at, layer, from: from * hexColumns, to: Math.min(to * hexColumns, from * hexColumns + perPage) }, abort);
    const data = Uint8Array.from(atob(r.data), (ch) => ch.charCodeAt(0));
    const rows = [];
    for (let i = 0; i < data.length; i += hexColumns) rows.push({ data, spans: r.spans, i, base: from * hexColumns });
    return { total: Math.ceil(r.total / hexColumns), rows };
  }, [at.c, at.x, at.part, at.f, layer], [recorded.value]);
  const own = chosen && chosen.layer === layer ? chosen : undefined;
  const line = own ? Math.floor(own.off / hexColumns) : -1;
  const [caret, setCaret] = useState(-1);
  useEffect(() => setCaret(line), [line, own?.row]);
  /** @param {any} row */
  const cell = (row) => {
    const list = parts(row.data, row.spans, row.i, row.base, own);
    /** @param {(from: number, to: number) => string} text */
    const paint = (text) => list.map((p) => html`<span class=${p.cls} onClick=${(/** @type {Event} */ e) => { e.stopPropagation(); if (p.row >= 0) choose(p.row); }}>${text(p.from, p.to)}</span>`);
    return html`<span class="off dim">${(row.base + row.i).toString(16).padStart(6, "0")}</span>
      <span class="hex">${paint((a, b) => hexText(row.data, a, b, row.i))}</span>
      <span class="asc">${paint((a, b) => ascii(row.data, a, b))}</span>`;
  };
  /** Chooses the field of a line's first byte. @param {number} i */
  const move = (i) => {
    setCaret(i);
    get("at", { ...at, layer, off: i * hexColumns }).then((r) => r.row >= 0 && choose(r.row), () => {});
  };
  return html`<${Rows} id="bytes" class="hexdump" pages=${pages} height=${20} label="Bytes in hexadecimal" selected=${caret} cell=${cell} onMove=${move} empty="No bytes." />`;
}

/** @param {Uint8Array} data @param {number} from @param {number} to @param {number} start */
function hexText(data, from, to, start) {
  let s = "";
  for (let i = from; i < to; i++) s += data[i].toString(16).padStart(2, "0") + ((i - start) % 8 === 7 ? "  " : " ");
  return s;
}

/** @param {Uint8Array} data @param {number} from @param {number} to */
function ascii(data, from, to) {
  let s = "";
  for (let i = from; i < to; i++) s += data[i] >= 0x20 && data[i] < 0x7f ? String.fromCharCode(data[i]) : "·";
  return s;
}

/** @param {{ layer: number, chosen: any, choose: (row: number) => void }} props */
function Text({ layer, chosen, choose }) {
  const at = here();
  const pages = usePages(async (from, to, abort) => {
    const r = await get("text", { ...at, layer, from, to }, abort);
    return { total: r.total, rows: r.rows };
  }, [at.c, at.x, at.part, at.f, layer], [recorded.value]);
  const own = chosen && chosen.layer === layer ? chosen : undefined;
  const [caret, setCaret] = useState(-1);
  const asked = useRef(0);
  useEffect(() => {
    const n = ++asked.current;
    if (!own) setCaret(-1);
    else get("text", { ...at, layer, from: 0, to: 0, off: own.off }).then((r) => n === asked.current && setCaret(r.position), () => {});
  }, [own?.row]);
  const inside = useMemo(() => (own ? [own.row, own.row + own.inside] : [-1, -2]), [own]);
  /** @param {any} row */
  const cell = (row) => row.parts.map((/** @type {any} */ p) => html`<span class=${`${p.class ?? ""} ${p.row >= inside[0] && p.row <= inside[1] ? "lit" : ""}`}
    onClick=${(/** @type {Event} */ e) => { e.stopPropagation(); if (p.row >= 0) choose(p.row); }}>${shown(p.text.replace(/\n$/, "↵"))}</span>`);
  return html`<${Rows} id="bytes" class="textdump" pages=${pages} height=${20} label="Text" selected=${caret} cell=${cell} empty="No text."
    onMove=${(/** @type {number} */ i, /** @type {any} */ row) => { setCaret(i); const p = row?.parts.find((/** @type {any} */ q) => q.row >= 0); if (p) choose(p.row); }} />`;
}

