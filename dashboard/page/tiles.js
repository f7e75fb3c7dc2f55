// Reads what the server answers in binary: allocation over time, and at an instant.

import { none } from "./palette.js";

/**
 * Allocation over time.
 * @typedef {object} Heat
 * @property {number} rows
 * @property {number} cols
 * @property {number} keys in the selection
 * @property {number} from
 * @property {number} to
 * @property {number} perRow keys that a row stands for
 * @property {Float64Array} key the first of each row
 * @property {Uint8Array} owner by row and column
 * @property {Uint8Array} agree how many of the row's keys have that owner, of 255
 * @property {Uint8Array} replicas a key, in quarters
 * @property {Uint8Array} heat code of the accesses a second
 */

/**
 * Allocation at an instant.
 * @typedef {object} Instant
 * @property {number} n
 * @property {number} wide bytes of a key's bitmap of replicas
 * @property {number} total keys in the selection
 * @property {number} t
 * @property {Float64Array} key
 * @property {Uint8Array} owner
 * @property {Uint8Array} heat code of all accesses of the run
 * @property {Uint8Array} replicas bitmaps
 */

/**
 * @param {ArrayBuffer} buffer
 * @param {string} magic
 */
function open(buffer, magic) {
  const view = new DataView(buffer);
  const found = buffer.byteLength < 4 ? "" : String.fromCharCode(...new Uint8Array(buffer, 0, 4));
  if (found !== magic) {
    throw new Error(`the server answered something else than ${magic}: is the page older than the server? Load it again`);
  }
  return view;
}

/**
 * @param {ArrayBuffer} buffer
 * @returns {Heat}
 */
export function readHeat(buffer) {
  const v = open(buffer, "GDH1");
  const rows = v.getUint32(4, true);
  const cols = v.getUint32(8, true);
  const cells = rows * cols;
  let at = 40;
  const next = () => new Uint8Array(buffer, (at += cells) - cells, cells);
  const key = floats(buffer, at, rows);
  at += 8 * rows;
  return { rows, cols, keys: v.getUint32(12, true), from: v.getFloat64(16, true), to: v.getFloat64(24, true), perRow: v.getUint32(32, true),
    key, owner: next(), agree: next(), replicas: next(), heat: next() };
}

/**
 * @param {ArrayBuffer} buffer
 * @returns {Instant}
 */
export function readInstant(buffer) {
  const v = open(buffer, "GDI1");
  const n = v.getUint32(4, true);
  const wide = v.getUint32(8, true);
  const at = 24 + 8 * n;
  return { n, wide, total: v.getUint32(12, true), t: v.getFloat64(16, true), key: floats(buffer, 24, n),
    owner: new Uint8Array(buffer, at, n), heat: new Uint8Array(buffer, at + n, n), replicas: new Uint8Array(buffer, at + 2 * n, n * wide) };
}

/**
 * @param {ArrayBuffer} buffer
 * @param {number} at a multiple of eight
 * @param {number} n
 */
function floats(buffer, at, n) {
  return new Float64Array(buffer, at, n);
}

/**
 * How many accesses a code of heat stands for, about.
 * @param {number} code
 */
export function accesses(code) {
  return Math.round(2 ** (code / 8) - 1);
}

/**
 * The nodes that have a replica of key i.
 * @param {Instant} at
 * @param {number} i
 */
export function replicasOf(at, i) {
  const nodes = [];
  for (let node = 0; node < 8 * at.wide; node++) {
    if ((at.replicas[i * at.wide + (node >> 3)] ?? 0) >> (node & 7) & 1) {
      nodes.push(node);
    }
  }
  return nodes;
}

/**
 * The owner in words.
 * @param {number | null | undefined} owner
 */
export function ownerText(owner) {
  return owner === none || owner === null || owner === undefined ? "no owner known" : `node ${owner}`;
}
