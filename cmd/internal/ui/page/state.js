// @ts-check
// What the page shows: the state is the URL's fragment, so that each state is a URL.
import { batch, signal } from "./vendor.js";
import { APIError, get, token } from "./api.js";

/** @typedef {Record<string, string>} Route */

/** @returns {Route} */
function read() {
  const r = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  delete r.token;
  return r;
}

/** The state: v is the view, c the capture, x the exchange, f the frame, and others of the views. */
export const route = signal(read());

addEventListener("hashchange", () => {
  route.value = read();
});

/**
 * The URL of a state.
 * @param {Record<string, string | number | undefined>} to
 */
export function link(to) {
  const q = new URLSearchParams();
  if (token) q.set("token", token);
  for (const [k, v] of Object.entries(to)) {
    if (v !== undefined && v !== "") q.set(k, String(v));
  }
  return `#${q}`;
}

/**
 * Goes to a state that differs in some members; "" removes a member.
 * @param {Record<string, string | number | undefined>} change
 * @param {boolean} [replace] whether "back" passes over the present state
 */
export function change(change, replace) {
  go({ ...route.value, ...change }, replace);
}

/**
 * Goes to a state.
 * @param {Record<string, string | number | undefined>} to
 * @param {boolean} [replace]
 */
export function go(to, replace) {
  const url = link(to);
  if (url === location.hash) return;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  route.value = read();
}

/** The captures' paths. */
export const captures = signal(/** @type {string[]} */ ([]));

/** The state of the captures: it changes when something is recorded or noted. */
export const recorded = signal("");

/** The frames that the recorder of the shown capture holds. @type {{ value: any[] }} */
export const held = signal(/** @type {any[]} */ ([]));

/** A message for the user, such as "Copied"; alarm is for failures. */
export const message = signal({ text: "", alarm: false });

let clearing = 0;

/**
 * @param {string} text
 * @param {boolean} [alarm]
 */
export function say(text, alarm = false) {
  message.value = { text, alarm };
  clearTimeout(clearing);
  if (text) clearing = window.setTimeout(() => say(""), alarm ? 10_000 : 4000);
}

/** @param {unknown} e */
export function fail(e) {
  if (e instanceof DOMException && e.name === "AbortError") return;
  say(e instanceof Error ? e.message : String(e), true);
}

/** Follows the captures while the page is open. */
export async function follow() {
  for (;;) {
    try {
      const { state } = await get("changes", { after: recorded.value });
      if (state !== recorded.value) {
        const list = (await get("captures")).captures;
        batch(() => {
          if (list.join("\n") !== captures.value.join("\n")) captures.value = list;
          recorded.value = state;
        });
      }
    } catch (e) {
      if (e instanceof APIError) {
        fail(e);
        return;
      }
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

/** The parameters of the API that name what is shown. */
export function here() {
  const { c, x, part, f } = route.value;
  return { c: c ?? "0", x, part, f };
}

/** The name of the capture, as commands take it. */
export function captureName() {
  return captures.value[Number(route.value.c ?? 0)] ?? "";
}
