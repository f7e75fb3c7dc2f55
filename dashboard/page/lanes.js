// The life of one key as lanes: a picture of what each node had of it, wanted of it and did with it.

import { css, ink } from "./palette.js";
import { colour } from "./theme.js";

/** @typedef {import("./types.js").Key} Key */
/** @typedef {import("./types.js").KeyNode} KeyNode */
/** @typedef {import("./types.js").Span} Span */

/**
 * The part of time that is shown.
 * @typedef {object} Range
 * @property {number} from
 * @property {number} to
 */

const left = 92; // for labels
const ownerTall = 26;
const rows = { holds: 14, intents: 8, accesses: 26, age: 20 };
const gap = 4;
const between = 18;

/**
 * Which lanes a node has.
 * @param {KeyNode} n
 */
function lanesOf(n) {
  return { holds: true, intents: (n.intent?.length ?? 0) > 0, accesses: (n.accessed?.length ?? 0) > 0, age: (n.age?.length ?? 0) > 1 };
}

/**
 * The nodes that had anything to do with a key.
 * @param {Key} key
 */
export function nodesOf(key) {
  return (key.nodes ?? []).filter((n) => n.owned || n.moves || n.copies || n.refreshes || n.intents || n.asked?.length || n.accesses || n.missed);
}

/** @param {KeyNode} n */
function tallOf(n) {
  const has = lanesOf(n);
  return Object.entries(rows).reduce((s, [name, t]) => s + (has[/** @type {keyof typeof has} */ (name)] ? t + gap : 0), between);
}

/**
 * How tall the picture of a key is, in pixels of the page.
 * @param {Key} key
 */
export function laneHeight(key) {
  return ownerTall + 14 + nodesOf(key).reduce((s, n) => s + tallOf(n), 0) + 4;
}

/** Where the lanes begin, as a share of the width. */
export const laneStart = (/** @type {number} */ width) => left / Math.max(left + 1, width);

/**
 * Draws the lanes.
 * @param {CanvasRenderingContext2D} ctx
 * @param {Key} key
 * @param {Range} range
 * @param {number} scale
 */
export function drawLanes(ctx, key, range, scale) {
  const width = ctx.canvas.width / scale;
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  ctx.fillStyle = colour("--card");
  ctx.fillRect(0, 0, width, ctx.canvas.height / scale);
  const d = new Drawing(ctx, width, range);
  let y = d.owners(key, 4);
  for (const n of nodesOf(key)) {
    y = d.node(n, key, y);
  }
  ctx.setTransform(1, 0, 0, 1, 0, 0);
}

class Drawing {
  /**
   * @param {CanvasRenderingContext2D} ctx
   * @param {number} width
   * @param {Range} range
   */
  constructor(ctx, width, range) {
    this.ctx = ctx;
    this.width = width;
    this.range = range;
    this.ink = colour("--ink");
    this.soft = colour("--soft");
    this.line = colour("--line");
    this.sunken = colour("--sunken");
    this.bad = colour("--wait-0");
  }

  /** @param {number} t */
  x(t) {
    const { from, to } = this.range;
    return left + (t - from) / (to - from) * (this.width - left);
  }

  /**
   * Where a span lies, or null if it is not in the range.
   * @param {number} from
   * @param {number | null} to
   * @returns {[number, number] | null}
   */
  span(from, to) {
    const end = to ?? this.range.to;
    if (end < this.range.from || from > this.range.to) {
      return null;
    }
    const a = Math.max(left, this.x(from));
    return [a, Math.max(1, Math.min(this.width, this.x(end)) - a)];
  }

  /**
   * @param {string} text
   * @param {number} y the middle
   * @param {boolean} [strong]
   */
  label(text, y, strong) {
    this.ctx.font = `${strong ? "600 13px" : "12px"} system-ui, "Liberation Sans", sans-serif`;
    this.ctx.fillStyle = strong ? this.ink : this.soft;
    this.ctx.textAlign = "left";
    this.ctx.textBaseline = "middle";
    this.ctx.fillText(text, strong ? 0 : 12, y);
  }

  /**
   * @param {number} y
   * @param {number} tall
   */
  ground(y, tall) {
    this.ctx.fillStyle = this.sunken;
    this.ctx.fillRect(left, y, this.width - left, tall);
  }

  /**
   * The owner of all time, with its number where there is room.
   * @param {Key} key
   * @param {number} y
   */
  owners(key, y) {
    this.label("Owner", y + ownerTall / 2, true);
    this.ground(y, ownerTall);
    for (const r of key.reigns ?? []) {
      const s = this.span(r.from, r.to);
      if (!s) {
        continue;
      }
      this.ctx.fillStyle = css(r.owner);
      this.ctx.fillRect(s[0], y, s[1], ownerTall);
      if (s[1] > 18) {
        this.ctx.fillStyle = ink(r.owner);
        this.ctx.font = `600 12px ui-monospace, "DejaVu Sans Mono", monospace`;
        this.ctx.textAlign = "center";
        this.ctx.fillText(String(r.owner), s[0] + s[1] / 2, y + ownerTall / 2);
        this.ctx.fillStyle = colour("--card");
        this.ctx.fillRect(s[0] + s[1] - 1, y, 1, ownerTall);
      }
    }
    return y + ownerTall + 10;
  }

  /**
   * @param {KeyNode} n
   * @param {Key} key
   * @param {number} y
   */
  node(n, key, y) {
    const has = lanesOf(n);
    this.ctx.fillStyle = this.line;
    this.ctx.fillRect(0, y + 2, this.width, 1);
    y += between - 6;
    this.holds(n, key, y);
    y += rows.holds + gap;
    if (has.intents) {
      this.intents(n, y);
      y += rows.intents + gap;
    }
    if (has.accesses) {
      this.accesses(n, y);
      y += rows.accesses + gap;
    }
    if (has.age) {
      this.age(n, y);
      y += rows.age + gap;
    }
    return y + 6;
  }

  /**
   * What copy the node had: solid as the owner, striped as a replica, ticks for refreshes.
   * @param {KeyNode} n
   * @param {Key} key
   * @param {number} y
   */
  holds(n, key, y) {
    this.label(`Node ${n.id}`, y + rows.holds / 2, true);
    this.ground(y, rows.holds);
    for (const r of n.replica ?? []) {
      const s = this.span(...r);
      if (s) {
        this.stripes(s, y, css(n.id));
      }
    }
    this.ctx.fillStyle = css(n.id);
    for (const r of key.reigns ?? []) {
      const s = r.owner === n.id ? this.span(r.from, r.to) : null;
      if (s) {
        this.ctx.fillRect(s[0], y, s[1], rows.holds);
      }
    }
    this.ctx.fillStyle = this.ink;
    for (const t of n.refreshed ?? []) {
      if (t >= this.range.from && t <= this.range.to) {
        this.ctx.fillRect(this.x(t), y + rows.holds - 4, 1, 4);
      }
    }
  }

  /**
   * @param {[number, number]} s
   * @param {number} y
   * @param {string} paint
   */
  stripes(s, y, paint) {
    const { ctx } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(s[0], y, s[1], rows.holds);
    ctx.clip();
    ctx.globalAlpha = 0.28;
    ctx.fillStyle = paint;
    ctx.fillRect(s[0], y, s[1], rows.holds);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = paint;
    ctx.lineWidth = 2;
    ctx.beginPath();
    for (let x = s[0] - s[0] % 7 - 14; x < s[0] + s[1]; x += 7) {
      ctx.moveTo(x, y + rows.holds);
      ctx.lineTo(x + rows.holds, y);
    }
    ctx.stroke();
    ctx.restore();
  }

  /**
   * @param {KeyNode} n
   * @param {number} y
   */
  intents(n, y) {
    this.label("intents", y + rows.intents / 2);
    this.ctx.fillStyle = this.soft;
    for (const i of n.intent ?? []) {
      const s = this.span(...i);
      if (s) {
        this.ctx.fillRect(s[0], y + rows.intents / 2 - 1.5, s[1], 3);
        this.ctx.fillRect(s[0], y, 1.5, rows.intents);
      }
    }
  }

  /**
   * Accesses a second as bars; those that had to ask or wait in another colour, at the foot.
   * @param {KeyNode} n
   * @param {number} y
   */
  accesses(n, y) {
    this.label("accesses", y + rows.accesses / 2);
    this.ground(y, rows.accesses);
    const rate = (/** @type {number} */ count, /** @type {number} */ from, /** @type {number} */ to) => count / Math.max(1e-3, to - from);
    const most = (n.accessed ?? []).reduce((m, [from, to, count]) => Math.max(m, rate(count, from, to)), 0);
    for (const [from, to, count, missed] of n.accessed ?? []) {
      const s = this.span(from, to);
      if (!s || most === 0) {
        continue;
      }
      const tall = Math.max(1, rows.accesses * rate(count, from, to) / most);
      this.ctx.fillStyle = css(n.id);
      this.ctx.fillRect(s[0], y + rows.accesses - tall, s[1], tall);
      if (missed > 0) {
        const part = Math.max(2, tall * missed / count);
        this.ctx.fillStyle = this.ink;
        this.ctx.fillRect(s[0], y + rows.accesses - part, s[1], part);
      }
    }
  }

  /**
   * How old the replica's value was when it was refreshed.
   * @param {KeyNode} n
   * @param {number} y
   */
  age(n, y) {
    this.label("age", y + rows.age / 2);
    const most = (n.age ?? []).reduce((m, [, a]) => Math.max(m, a), 1e-9);
    this.ctx.fillStyle = this.soft;
    for (const [t, a] of n.age ?? []) {
      if (t >= this.range.from && t <= this.range.to) {
        const tall = Math.max(1, rows.age * a / most);
        this.ctx.fillRect(this.x(t) - 0.75, y + rows.age - tall, 1.5, tall);
      }
    }
  }
}
