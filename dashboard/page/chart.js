// Curves, by uPlot: in the page's colours, as wide as their place, with a table of the same figures.

import uPlot from "./vendor/uPlot.esm.js";
import { fill, h, table } from "./dom.js";
import { moment } from "./format.js";
import { colour, onTheme } from "./theme.js";

/**
 * @typedef {object} Line
 * @property {string} label
 * @property {string} stroke
 * @property {number[]} [dash]
 * @property {boolean} [points]
 */

/**
 * @typedef {object} Options
 * @property {string} title for readers who do not see the picture
 * @property {(n: number | null | undefined) => string} value how a figure is written
 * @property {(n: number) => string} [time] how a place on the x axis is written; else as time of the run
 * @property {string} [unit] what the x axis is, if it is not time
 * @property {number} [height]
 * @property {boolean} [gaps] values lie apart, and are joined over what is not known
 * @property {boolean} [zero] the y axis begins at 0
 */

/**
 * A picture of curves that share the x axis.
 */
export class Chart {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.place = h("div", { class: "curve", role: "img", "aria-label": options.title });
    this.figures = h("div", {});
    this.more = h("details", { class: "small", toggle: () => this.fillTable() }, h("summary", {}, "As a table"), this.figures);
    this.el = h("div", {}, this.place, this.more);
    /** @type {uPlot | null} */
    this.plot = null;
    /** @type {Line[]} */
    this.lines = [];
    /** @type {uPlot.AlignedData} */
    this.data = [[]];
    this.shape = "";
    this.width = 0;
    this.frame = 0; // in which the legend is set
    this.place.addEventListener("pointerleave", () => this.showLast());
    this.sized = new ResizeObserver(() => this.resize());
    this.sized.observe(this.place);
    this.themed = onTheme(() => this.make());
  }

  /**
   * Shows curves; null is a gap.
   * @param {number[]} x
   * @param {Line[]} lines
   * @param {(number | null)[][]} values
   */
  show(x, lines, values) {
    this.data = [x, ...values];
    const shape = JSON.stringify(lines);
    if (this.plot && shape === this.shape) {
      this.plot.setData(this.data);
      this.showLast();
    } else {
      this.shape = shape;
      this.lines = lines;
      this.make();
    }
    if (this.more.open) {
      this.fillTable();
    }
  }

  make() {
    this.plot?.destroy();
    this.plot = null;
    this.width = Math.floor(this.place.clientWidth);
    if (this.width < 40 || this.lines.length === 0) {
      return;
    }
    const { value, time, zero, height, gaps } = this.options;
    const ink = colour("--soft");
    const grid = { stroke: colour("--line"), width: 1 };
    const font = "12px system-ui, sans-serif";
    const x = this.data[0];
    const at = (/** @type {number} */ t) => time ? time(t) : moment(t, (x[x.length - 1] ?? 0) - (x[0] ?? 0));
    this.plot = new uPlot({
      width: this.width,
      height: height ?? 200,
      scales: { x: { time: false }, y: { range: (_u, low, high) => rangeOf(low, high, zero ?? false) } },
      axes: [
        { stroke: ink, grid, ticks: grid, font, size: 30, space: 64, values: (_u, ticks) => ticks.map((t) => time ? time(t) : axisTime(t)) },
        { stroke: ink, grid, ticks: grid, font, size: (_u, texts) => 18 + 7 * Math.max(3, ...(texts ?? []).map((v) => v.length)), values: (_u, ticks) => labels(ticks, value) },
      ],
      cursor: { drag: { x: false, y: false }, y: false },
      legend: { live: true },
      series: [
        { label: this.options.unit ?? "time", value: (_u, v) => v === null || v === undefined ? "–" : at(v) },
        ...this.lines.map((l) => ({ label: l.label, stroke: l.stroke, width: 2, dash: l.dash ?? [], spanGaps: gaps ?? false, points: { show: l.points ?? false, size: 6 },
          value: (/** @type {unknown} */ _u, /** @type {number | null} */ v) => value(v) })),
      ],
    }, this.data, this.place);
    this.showLast();
  }

  /** Shows the last figures in the legend while nothing is pointed at. */
  showLast() {
    const last = this.data[0].length - 1;
    cancelAnimationFrame(this.frame); // a page that is not seen has no frames, and would gather what waits for one
    this.frame = requestAnimationFrame(() => { // behind what uPlot has still to draw
      if (this.plot && last >= 0 && last < this.data[0].length && !this.place.matches(":hover")) {
        this.plot.setLegend({ idx: last });
      }
    });
  }

  resize() {
    const width = Math.floor(this.place.clientWidth);
    if (width === this.width || width < 40) {
      return;
    }
    this.width = width;
    if (this.plot) {
      this.plot.setSize({ width, height: this.options.height ?? 200 });
    } else {
      this.make();
    }
  }

  fillTable() {
    if (!this.more.open) {
      return;
    }
    const [x, ...values] = this.data;
    const step = Math.max(1, Math.ceil(x.length / 40));
    /** @type {string[][]} */
    const rows = [];
    for (let i = 0; i < x.length; i += step) {
      const t = x[i] ?? 0;
      rows.push([this.options.time ? this.options.time(t) : moment(t, (x[x.length - 1] ?? 0) - (x[0] ?? 0)), ...values.map((v) => this.options.value(v?.[i]))]);
    }
    fill(this.figures, table(this.options.title, [this.options.unit ?? "time", ...this.lines.map((l) => "#" + l.label)], rows));
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.sized.disconnect();
    this.themed();
    this.plot?.destroy();
  }
}

/**
 * Writes ticks of an axis; with as many digits as tell them apart where they lie close together, as losses late in a run do.
 * @param {number[]} ticks
 * @param {(n: number) => string} value
 */
export function labels(ticks, value) {
  const texts = ticks.map((t) => value(t));
  if (new Set(texts).size === texts.length) {
    return texts;
  }
  const step = Math.abs((ticks[1] ?? 0) - (ticks[0] ?? 0));
  return ticks.map((t) => t.toFixed(Math.min(12, Math.max(0, Math.ceil(-Math.log10(step || 1) - 1e-6)))));
}

/**
 * Whether points of a curve are marked: many would hide it.
 * @param {unknown[] | null | undefined} points
 */
export function few(points) {
  return (points?.length ?? 0) <= 60;
}

const noise = 1e-5; // so small a share of a figure is no change of it

/**
 * The range of the y axis, with some room. What changes by less than noise is a straight line.
 * @param {number | null} low
 * @param {number | null} high
 * @param {boolean} zero
 * @returns {[number, number]}
 */
export function rangeOf(low, high, zero) {
  if (low === null || high === null) {
    return [0, 1];
  }
  const from = zero ? Math.min(0, low) : low;
  const room = (high - from > Math.abs(high) * noise ? high - from : Math.abs(high) || 1) * 0.08;
  return [zero && from === 0 ? 0 : from - room, high + room];
}

/** @param {number} t */
function axisTime(t) {
  if (t >= 600) {
    return `${+(t / 60).toFixed(1)} min`;
  }
  return `${+t.toFixed(3)} s`;
}
