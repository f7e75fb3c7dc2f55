// The colours of nodes: those of Okabe and Ito, which people who do not tell red from green tell
// apart. Beyond eight nodes colours come again, lighter and then darker, with stripes of the first colour. Beyond 24, colours are
// the same again, and stripes darker or lighter than these; squares that are large enough have the node's number, too.

/** @type {[number, number, number][]} */
const base = [
  [0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167],
  [86, 180, 233], [213, 94, 0], [240, 228, 66], [140, 140, 140],
];

/** The code of a key that no node says it owns. */
export const none = 255;

/**
 * The colour of a node, as red, green and blue.
 * @param {number} node
 * @returns {[number, number, number]}
 */
export function rgb(node) {
  const [r, g, b] = base[node % base.length] ?? [0, 0, 0];
  const turn = Math.floor(node / base.length) % 3;
  if (turn === 1) {
    return [mix(r, 255, 0.45), mix(g, 255, 0.45), mix(b, 255, 0.45)];
  }
  return turn === 2 ? [mix(r, 0, 0.4), mix(g, 0, 0.4), mix(b, 0, 0.4)] : [r, g, b];
}

const mix = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ part) => Math.round(from + (to - from) * part);

/** @param {number} node */
export function css(node) {
  const [r, g, b] = rgb(node);
  return `rgb(${r} ${g} ${b})`;
}

/**
 * Black or white: what is read on a node's colour.
 * @param {number} node
 */
export function ink(node) {
  const [r, g, b] = rgb(node).map((x) => (x / 255) ** 2.2);
  return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0) > 0.175 ? "#10161b" : "#ffffff";
}

/** Whether a node's squares have a pattern, since its colour is one of another node, changed. */
export function patterned(/** @type {number} */ node) {
  return node >= base.length;
}

/**
 * The colour of the stripes of a node beyond the eighth.
 * @param {number} node
 * @returns {[number, number, number]}
 */
function stripe(node) {
  const round = Math.floor(node / (3 * base.length)); // of colours that are all different
  if (round === 0) {
    return rgb(node % base.length);
  }
  const [r, g, b] = rgb(node);
  const to = round % 2 ? 0 : 255;
  return [mix(r, to, 0.5), mix(g, to, 0.5), mix(b, to, 0.5)];
}

/**
 * The colours of all owners as pixels of ImageData, 256 of them, and those of their stripes.
 * @param {number} only the one node to show in colour, or -1
 * @param {boolean} dark
 */
export function pixels(only, dark) {
  const grey = dark ? 52 : 214;
  const all = (/** @type {(node: number) => [number, number, number]} */ of) => {
    const bytes = new Uint8ClampedArray(1024);
    for (let node = 0; node < none; node++) {
      const [r, g, b] = only >= 0 && node !== only ? [grey, grey, grey] : of(node);
      bytes.set([r, g, b, 255], 4 * node);
    }
    return new Uint32Array(bytes.buffer);
  };
  return { colours: all(rgb), stripes: all(stripe) };
}

/** Curves that are not of nodes. */
export const curves = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c", "#a89a00"];
