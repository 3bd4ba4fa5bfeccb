// @ts-check
// How values are written. What is captured is written by shown alone, so that control characters
// and invisible characters are visible and reorder nothing.

/** C0, DEL, C1, and what is invisible or changes the direction of text. */
const hidden = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/**
 * Returns a captured text with visible signs in place of hidden characters.
 * @param {unknown} text
 * @returns {string}
 */
export function shown(text) {
  return String(text ?? "").replace(hidden, (c) => {
    const n = c.charCodeAt(0);
    if (n < 0x20) return String.fromCharCode(0x2400 + n);
    if (n === 0x7f) return "\u2421";
    return `\\u${n.toString(16).padStart(4, "0")}`;
  });
}

/**
 * @param {number} n
 * @returns {string} a number of bytes with a unit
 */
export function bytes(n) {
  if (n < 1000) return `${n} B`;
  for (const unit of ["KB", "MB", "GB"]) {
    n /= 1000;
    if (n < 1000 || unit === "GB") return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${unit}`;
  }
  return "";
}

/**
 * @param {number} ms
 * @returns {string} a duration
 */
export function duration(ms) {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(2)} s`;
  const s = Math.round(ms / 1000);
  return `${Math.floor(s / 60)} min ${s % 60} s`;
}

/**
 * @param {string} rfc3339
 * @returns {string} a local time of day
 */
export function clock(rfc3339) {
  const t = new Date(rfc3339);
  if (Number.isNaN(t.getTime())) return "";
  /** @param {number} n @param {number} w */
  const pad = (n, w) => String(n).padStart(w, "0");
  return `${pad(t.getHours(), 2)}:${pad(t.getMinutes(), 2)}:${pad(t.getSeconds(), 2)}.${pad(t.getMilliseconds(), 3)}`;
}

/**
 * @param {number} n
 * @param {string} what
 */
export function counted(n, what) {
  return `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
}

/** @param {number} p a probability */
export function percent(p) {
  if (p > 0 && p < 0.01) return "<1 %";
  if (p < 1 && p > 0.99) return ">99 %";
  return `${Math.round(p * 100)} %`;
}

/**
 * The name of an exchange's call: service and method, or verb and path.
 * @param {any} ex
 */
export function callName(ex) {
  if (ex.rpc) return `${ex.service.split(".").pop()}/${ex.rpc}`;
  let path = ex.url;
  try {
    const u = new URL(ex.url);
    path = u.pathname + u.search;
  } catch { /* shown as it is */ }
  return `${ex.method} ${path}`.trim();
}

/** @param {any} ex */
export function hostOf(ex) {
  try {
    return new URL(ex.url).host;
  } catch {
    return "";
  }
}

/** How an exchange ended. @param {any} ex */
export function ending(ex) {
  if (ex.complete) return ex.code || (ex.status ? String(ex.status) : "");
  return ex.outcome || "in flight";
}

/** Whether an exchange failed. @param {any} ex */
export function failed(ex) {
  if (!ex.outcome) return false;
  return !ex.complete || (ex.code && ex.code !== "ok") || ex.status >= 400;
}
