// A picture: a canvas of pixels, with another one above it for what moves, that a mouse and a
// keyboard point into.

import { h } from "./dom.js";
import { colour } from "./theme.js";

/**
 * What a picture's owner does.
 * @typedef {object} Handlers
 * @property {() => void} resized
 * @property {() => void} [top] draws again what lies above the pixels
 * @property {(x: number, y: number, event: MouseEvent) => void} pointed at a place, as shares 0 … 1 of the width and height
 * @property {() => void} left
 * @property {(x: number, y: number) => void} clicked
 * @property {(x: number, y: number) => void} [opened] by two clicks
 * @property {(from: [number, number], to: [number, number]) => void} [dragged] from upper left to lower right
 * @property {(event: KeyboardEvent) => boolean} [key] whether it did something
 */

export class Picture {
  /**
   * @param {string} label what it shows and which keys it knows, for those who do not see it
   * @param {Handlers} handlers
   */
  constructor(label, handlers) {
    this.handlers = handlers;
    this.canvas = h("canvas", {});
    this.over = h("canvas", { class: "over" });
    this.el = h("div", { class: "picture", tabindex: 0, role: "application", "aria-label": label }, this.canvas, this.over);
    // Pixels are put by the processor: so is the canvas kept in its memory.
    this.ctx = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: false, willReadFrequently: true }));
    this.top = /** @type {CanvasRenderingContext2D} */ (this.over.getContext("2d"));
    this.scale = 1;
    /** @type {[number, number] | null} */
    this.start = null;
    this.sized = new ResizeObserver(() => this.resize());
    this.sized.observe(this.el);
    this.listen();
  }

  /** @param {number} height in pixels of the page */
  setHeight(height) {
    const text = Math.round(height) + "px";
    if (this.el.style.height !== text) {
      this.el.style.height = text;
      this.resize();
    }
  }

  resize() {
    this.scale = Math.min(2, devicePixelRatio || 1);
    const width = Math.round(this.el.clientWidth * this.scale);
    const height = Math.round(this.el.clientHeight * this.scale);
    if (width < 1 || height < 1 || this.canvas.width === width && this.canvas.height === height) {
      return;
    }
    for (const c of [this.canvas, this.over]) {
      c.width = width;
      c.height = height;
    }
    this.ctx.fillStyle = colour("--sunken");
    this.ctx.fillRect(0, 0, width, height);
    this.handlers.resized();
  }

  listen() {
    const el = this.el;
    el.addEventListener("pointermove", (e) => {
      const [x, y] = this.at(e);
      if (this.start) {
        this.drawSelection(this.start, [x, y]);
      }
      this.handlers.pointed(x, y, e);
    });
    el.addEventListener("pointerleave", () => this.handlers.left());
    el.addEventListener("pointerdown", (e) => {
      if (e.button === 0 && e.pointerType === "mouse") {
        this.start = this.at(e);
        el.setPointerCapture(e.pointerId);
      }
    });
    el.addEventListener("pointerup", (e) => this.released(this.at(e)));
    el.addEventListener("pointercancel", () => { this.start = null; });
    el.addEventListener("dblclick", (e) => this.handlers.opened?.(...this.at(e)));
    el.addEventListener("keydown", (e) => {
      if (!e.ctrlKey && !e.metaKey && !e.altKey && this.handlers.key?.(e)) {
        e.preventDefault();
      }
    });
  }

  /** @param {[number, number]} to */
  released(to) {
    const from = this.start;
    this.start = null;
    const far = from && (Math.abs(from[0] - to[0]) * this.el.clientWidth > 6 || Math.abs(from[1] - to[1]) * this.el.clientHeight > 6);
    if (from && far && this.handlers.dragged) {
      this.handlers.dragged([Math.min(from[0], to[0]), Math.min(from[1], to[1])], [Math.max(from[0], to[0]), Math.max(from[1], to[1])]);
    } else {
      this.handlers.clicked(...to);
    }
  }

  /**
   * Where an event is, as shares of the width and the height.
   * @param {MouseEvent} e
   * @returns {[number, number]}
   */
  at(e) {
    const box = this.el.getBoundingClientRect();
    const share = (/** @type {number} */ v) => Math.min(1, Math.max(0, v));
    return [share((e.clientX - box.left) / box.width), share((e.clientY - box.top) / box.height)];
  }

  /**
   * @param {[number, number]} from
   * @param {[number, number]} to
   */
  drawSelection(from, to) {
    if (!this.handlers.dragged) {
      return;
    }
    const { width, height } = this.over;
    this.handlers.top?.();
    const [x, y] = [Math.min(from[0], to[0]) * width, Math.min(from[1], to[1]) * height];
    const [w, t] = [Math.abs(from[0] - to[0]) * width, Math.abs(from[1] - to[1]) * height];
    this.top.fillStyle = "rgb(255 255 255 / 30%)";
    this.top.fillRect(x, y, w, t);
    this.top.strokeStyle = "#10161b";
    this.top.lineWidth = 1.5 * this.scale;
    this.top.strokeRect(x, y, w, t);
  }

  clearTop() {
    this.top.clearRect(0, 0, this.over.width, this.over.height);
  }

  close() {
    this.sized.disconnect();
  }
}

/** A small window beside the pointer. */
export class Tip {
  constructor() {
    this.el = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    document.body.append(this.el);
  }

  /**
   * @param {MouseEvent} at
   * @param {(string | Node)[]} lines
   */
  show(at, lines) {
    this.el.replaceChildren(...lines.map((l) => h("div", {}, l)));
    this.el.hidden = false;
    const { offsetWidth: w, offsetHeight: t } = this.el;
    const left = at.clientX + 16 + w > innerWidth ? at.clientX - 16 - w : at.clientX + 16;
    const top = Math.min(innerHeight - t - 8, at.clientY + 14);
    this.el.style.transform = `translate(${Math.max(4, Math.round(left))}px, ${Math.max(4, Math.round(top))}px)`;
  }

  hide() {
    this.el.hidden = true;
  }

  close() {
    this.el.remove();
  }
}
