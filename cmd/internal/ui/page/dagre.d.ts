// The types of dagre.js, for tsc.
export { Graph, layout } from "@dagrejs/dagre";
