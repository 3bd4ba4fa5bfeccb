// @ts-check
// Requests to the server. The token stands in the URL's fragment and is sent as a header.
import { signal } from "./vendor.js";

/** The token of this session; "" if the URL has none. */
export const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";

/** What the last request that failed for want of a server said; "" if the server answers. */
export const offline = signal("");

/** An answer that is not ok. */
export class APIError extends Error {}

/**
 * @param {string} path
 * @param {Record<string, any>} params
 */
function address(path, params) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) {
    if (v !== undefined && v !== null && v !== "") q.set(k, String(v));
  }
  return `/api/${path}?${q}`;
}

/**
 * @param {string} url
 * @param {RequestInit} [init]
 */
async function send(url, init = {}) {
  let r;
  try {
    r = await fetch(url, { ...init, headers: { "X-Unwire-Token": token }, cache: "no-store" });
  } catch (e) {
    if (!init.signal?.aborted) offline.value = "unwire has ended: start it again and open the new URL";
    throw e;
  }
  offline.value = "";
  if (r.ok) return r;
  const text = await r.text();
  let message = text;
  try {
    message = JSON.parse(text).error;
  } catch { /* it is plain text */ }
  throw new APIError(message.trim());
}

/**
 * @param {string} path
 * @param {Record<string, any>} [params]
 * @param {AbortSignal} [abort]
 * @returns {Promise<any>}
 */
export async function get(path, params = {}, abort) {
  return (await send(address(path, params), { signal: abort })).json();
}

/**
 * @param {string} path
 * @param {Record<string, any>} params
 * @param {unknown} body
 * @returns {Promise<any>}
 */
export async function post(path, params, body) {
  return (await send(address(path, params), { method: "POST", body: JSON.stringify(body) })).json();
}

/**
 * Saves an answer as a file.
 * @param {string} path
 * @param {Record<string, any>} params
 */
export async function save(path, params) {
  const r = await send(address(path, params));
  const name = /filename="?([^";]+)"?/.exec(r.headers.get("Content-Disposition") ?? "")?.[1] ?? "download";
  const url = URL.createObjectURL(await r.blob());
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
