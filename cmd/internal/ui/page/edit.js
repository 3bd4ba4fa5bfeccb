// @ts-check
// The tree of a message whose values can be changed.
import { html, useState } from "./vendor.js";
import { get } from "./api.js";
import { shown } from "./format.js";
import { fail } from "./state.js";
import { Rows, usePages } from "./rows.js";

/**
 * The tree of a message; the value of the chosen field can be changed. path is where its rows are asked for, with at; they
 * are loaded anew when one of keys changes, and again when one of changes does. add is called with an edit, such as 1.2=x.
 * edits are those so far; if the rows are as recorded, they show the values of the edits.
 * @param {{ path: string, at: any, keys: unknown[], changes?: unknown[], edits: string[], add: (edit: string) => void }} props
 */
export function Edit({ path, at, keys, changes, edits, add }) {
  /** What an edit has set the value of a row to. @param {any} r @returns {string | undefined} */
  const edited = (r) => edits.findLast((e) => e.startsWith(`${r.full}=`))?.slice(r.full.length + 1);
  const pages = usePages(async (from, to, abort) => {
    const r = await get(path, { ...at, from, to }, abort);
    return { total: r.total, rows: r.rows };
  }, keys, changes);
  const [selected, setSelected] = useState(-1);
  const [row, setRow] = useState(/** @type {any} */ (undefined));
  const [value, setValue] = useState("");
  /** @param {number} i @param {any} r */
  const choose = (i, r) => {
    setSelected(i);
    setRow(r);
    setValue((r && edited(r)) ?? plain(r));
    if (r?.cut && path === "rows" && edited(r) === undefined) get("value", { ...at, row: r.row }).then((v) => setValue(plain({ ...r, text: v.text })), fail);
  };
  const editable = row && row.inside === 0;
  return html`<${Rows} id="edittree" class="tree short" pages=${pages} height=${22} label="Fields to edit" selected=${selected} onMove=${choose} onOpen=${() => document.getElementById("newvalue")?.focus()}
      cell=${(/** @type {any} */ r) => html`<span class="indent" style=${{ width: `${r.depth * 14}px` }}></span><span class="name"><b>${r.field ? r.field.n : shown(r.name)}</b> ${shown(r.field?.name)}</span><span class="type">${shown(r.field ? r.field.type || r.field.kind : r.kind)}</span><span class="value">${edited(r) === undefined ? shown(r.text) : html`<span class="tag doubt">edited</span> ${shown(edited(r))}`}</span>`} />
    ${editable && html`<form class="edit" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); add(`${row.full}=${value}`); }}>
      <label for="newvalue"><code>${shown(row.full)}</code></label><input id="newvalue" value=${value} onInput=${(/** @type {any} */ e) => setValue(e.target.value)} /><button type="submit">Set</button></form>`}
    ${row && !editable && html`<p class="dim">Choose a value inside <code>${shown(row.full)}</code>.</p>`}`;
}

/** The value of a row as it is typed. @param {any} r */
function plain(r) {
  if (!r) return "";
  try {
    const v = JSON.parse(r.text);
    return typeof v === "string" ? v : r.text;
  } catch {
    return r.text;
  }
}
