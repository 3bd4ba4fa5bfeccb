// The types of vendor.js, for tsc.
export { render } from "preact";
export { useState, useEffect, useLayoutEffect, useRef, useMemo } from "preact/hooks";
export { signal, batch } from "@preact/signals";
import type { VNode } from "preact";
export const html: (strings: TemplateStringsArray, ...values: any[]) => VNode<any>;
