// Paints keys: many cells at once into the pixels of an image, without an element a cell.
//
// A cell has the colour of its key's owner. A cell whose key has replicas has dark dots in it: few for
// one replica, more for several. So replicas are seen in every colour, and without colours. Cells of
// nodes beyond the eighth have stripes.

import { ink, none, patterned, pixels } from "./palette.js";

/** @typedef {import("./tiles.js").Heat} Heat */
/** @typedef {import("./tiles.js").Instant} Instant */

/**
 * What of it is shown.
 * @typedef {object} Look
 * @property {number} only the one node to show in colour, or -1
 * @property {boolean} dark
 * @property {boolean} heat cells that nobody accesses are paler
 */

const dot = 0xff1b1610; // black, nearly
const little = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/**
 * Whether a pixel of a cell with replicas is a dot.
 * @param {number} x
 * @param {number} y
 * @param {number} quarters replicas, in quarters
 */
function dotted(x, y, quarters) {
  if (quarters >= 12) {
    return x % 2 === 0 && y % 2 === 0;
  }
  if (quarters >= 8) {
    return x % 3 === 0 && y % 2 === 0;
  }
  if (quarters >= 3) {
    return x % 4 === 0 && y % 2 === 0;
  }
  return quarters > 0 && x % 6 === 0 && y % 3 === 0;
}

/** Whether a pixel belongs to the stripes of nodes beyond the eighth. */
const striped = (/** @type {number} */ x, /** @type {number} */ y) => (x + y) % 5 < 2;

/**
 * Mixes a pixel with the ground, by 0 … 255.
 * @param {number} pixel
 * @param {number} ground
 * @param {number} part of the pixel
 */
function mix(pixel, ground, part) {
  if (part >= 255) {
    return pixel;
  }
  const rest = 255 - part;
  const r = ((pixel & 255) * part + (ground & 255) * rest) >> 8;
  const g = ((pixel >> 8 & 255) * part + (ground >> 8 & 255) * rest) >> 8;
  const b = ((pixel >> 16 & 255) * part + (ground >> 16 & 255) * rest) >> 8;
  return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
}

/** The ground: what has no owner, as a pixel. */
const groundOf = (/** @type {boolean} */ dark) => dark ? 0xff110e0b : 0xfff1efec;

/**
 * The image of a context's whole canvas, kept as long as its size is the same.
 * @type {WeakMap<CanvasRenderingContext2D, ImageData>}
 */
const images = new WeakMap();

/** @param {CanvasRenderingContext2D} ctx */
function imageOf(ctx) {
  const { width, height } = ctx.canvas;
  let image = images.get(ctx);
  if (!image || image.width !== width || image.height !== height) {
    image = ctx.createImageData(width, height);
    images.set(ctx, image);
  }
  return image;
}

/**
 * Paints allocation over time: a row a line, a column a time, over the whole canvas.
 * @param {CanvasRenderingContext2D} ctx
 * @param {Heat} heat
 * @param {Look} look
 */
export function paintHeat(ctx, heat, look) {
  const image = imageOf(ctx);
  const { width, height } = image;
  const out = new Uint32Array(image.data.buffer);
  const paints = pixels(look.only, look.dark);
  const ground = groundOf(look.dark);
  if (!little || heat.rows === 0 || heat.cols === 0) {
    out.fill(ground);
    ctx.putImageData(image, 0, 0);
    return;
  }
  const shade = look.heat ? shades(heat.heat) : null;
  const columns = new Uint32Array(width);
  for (let x = 0; x < width; x++) {
    columns[x] = Math.min(heat.cols - 1, Math.floor(x * heat.cols / width));
  }
  const line = height / heat.rows;
  for (let y = 0; y < height; y++) {
    const row = Math.min(heat.rows - 1, Math.floor(y / line));
    const last = line >= 5 && Math.floor((y + 1) / line) !== row;
    const start = row * heat.cols;
    for (let x = 0, at = y * width; x < width; x++, at++) {
      const cell = start + (columns[x] ?? 0);
      out[at] = last ? ground : cellPixel(heat, cell, paints, ground, shade, x, y);
    }
  }
  ctx.putImageData(image, 0, 0);
}

/**
 * @param {Heat} heat
 * @param {number} cell
 * @param {{colours: Uint32Array, stripes: Uint32Array}} paints
 * @param {number} ground
 * @param {Uint8Array | null} shade what of the colour is seen, by the code of heat; null: all
 * @param {number} x
 * @param {number} y
 */
function cellPixel(heat, cell, paints, ground, shade, x, y) {
  const owner = heat.owner[cell] ?? none;
  if (owner === none) {
    return ground;
  }
  const quarters = heat.replicas[cell] ?? 0;
  if (quarters > 0 && dotted(x, y, quarters)) {
    return dot;
  }
  let pixel = (patterned(owner) && striped(x, y) ? paints.stripes : paints.colours)[owner] ?? ground;
  const agree = heat.agree[cell] ?? 255;
  if (agree < 250) {
    pixel = mix(pixel, ground, 70 + Math.round(agree * 185 / 255));
  }
  if (shade) {
    pixel = mix(pixel, ground, shade[heat.heat[cell] ?? 0] ?? 255);
  }
  return pixel;
}

/**
 * How much of its colour a cell has, by the code of its heat: all of it where a picture is hottest.
 * @param {Uint8Array} heat of the cells
 */
function shades(heat) {
  const most = Math.max(1, heat.reduce((a, b) => Math.max(a, b), 0));
  return Uint8Array.from({ length: 256 }, (_, code) => code === 0 ? 40 : 70 + Math.round(185 * Math.min(1, code / most)));
}

/**
 * How the squares of an instant lie on a canvas.
 * @typedef {object} Grid
 * @property {number} size of a square with its gap, in pixels of the canvas
 * @property {number} gap
 * @property {number} across squares in a line
 * @property {number} lines
 */

/**
 * Finds the largest squares of n keys that fit.
 * @param {number} n
 * @param {number} width in pixels of the canvas
 * @param {number} height that they may take at the most
 * @param {number} scale pixels of the canvas for one of the page
 * @returns {Grid}
 */
export function gridOf(n, width, height, scale) {
  let size = Math.min(Math.floor(26 * scale), Math.max(1, Math.floor(Math.sqrt(width * height / Math.max(1, n)))));
  while (size > 1 && Math.ceil(n / Math.floor(width / size)) * size > height) {
    size--;
  }
  const across = Math.max(1, Math.floor(width / size));
  return { size, gap: size >= 12 ? 2 : size >= 4 ? 1 : 0, across, lines: Math.ceil(n / across) };
}

/**
 * Paints allocation at an instant: a square a key.
 * @param {CanvasRenderingContext2D} ctx
 * @param {Instant} at
 * @param {Grid} grid
 * @param {Look} look
 */
export function paintInstant(ctx, at, grid, look) {
  const image = imageOf(ctx);
  const { width, height } = image;
  const out = new Uint32Array(image.data.buffer);
  const paints = pixels(look.only, look.dark);
  const ground = groundOf(look.dark);
  const shade = look.heat ? shades(at.heat) : null;
  out.fill(ground);
  const side = grid.size - grid.gap;
  for (let i = 0; i < at.n; i++) {
    const owner = at.owner[i] ?? none;
    const left = i % grid.across * grid.size;
    const top = Math.floor(i / grid.across) * grid.size;
    if (owner === none || top + side > height) {
      continue;
    }
    const part = shade ? shade[at.heat[i] ?? 0] ?? 255 : 255;
    const pixel = mix(paints.colours[owner] ?? ground, ground, part);
    const stripe = patterned(owner) && side >= 3 ? mix(paints.stripes[owner] ?? ground, ground, part) : pixel;
    const quarters = 4 * copies(at, i);
    for (let y = top; y < top + side; y++) {
      const end = y * width + left + side;
      for (let p = y * width + left, x = left; p < end; p++, x++) {
        out[p] = quarters > 0 && inDot(x - left, y - top, side, quarters) ? dot : striped(x, y) ? stripe : pixel;
      }
    }
  }
  ctx.putImageData(image, 0, 0);
  if (side >= 13) {
    paintNumbers(ctx, at, grid, look);
  }
}

/**
 * Whether a pixel of a square is one of its dots, which tell replicas: a band at the foot of a
 * large square, single pixels of a small one.
 * @param {number} x within the square
 * @param {number} y within the square
 * @param {number} side
 * @param {number} quarters
 */
function inDot(x, y, side, quarters) {
  if (side < 2) {
    return false;
  }
  if (side < 6) {
    return quarters >= 8 ? (x + y) % 2 === 1 : x === side - 1 && y === side - 1;
  }
  const tall = Math.max(1, Math.round(side / 7));
  return y >= side - 2 * tall && y < side - tall && x % (2 * tall + 1) >= tall + 1 && x < side - 1 && Math.floor(x / (2 * tall + 1)) < quarters / 4;
}

/**
 * How many replicas a key has.
 * @param {Instant} at
 * @param {number} i
 */
function copies(at, i) {
  let n = 0;
  for (let b = i * at.wide; b < (i + 1) * at.wide; b++) {
    for (let bits = at.replicas[b] ?? 0; bits; bits &= bits - 1) {
      n++;
    }
  }
  return n;
}

/**
 * Writes the owner's number into each square.
 * @param {CanvasRenderingContext2D} ctx
 * @param {Instant} at
 * @param {Grid} grid
 * @param {Look} look
 */
function paintNumbers(ctx, at, grid, look) {
  const side = grid.size - grid.gap;
  ctx.font = `600 ${Math.round(side * 0.5)}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (let i = 0; i < at.n; i++) {
    const owner = at.owner[i] ?? none;
    if (owner === none || look.only >= 0 && look.only !== owner) {
      continue;
    }
    ctx.fillStyle = inkOf(owner);
    ctx.fillText(String(owner), i % grid.across * grid.size + side / 2, Math.floor(i / grid.across) * grid.size + side * 0.45);
  }
}

/** @type {string[]} */
const inks = [];

/** @param {number} node */
function inkOf(node) {
  return inks[node] ??= ink(node);
}
