// Allocation: who owns which key. Two pictures of the same keys in the same order: key × time, and a square a
// key at an instant. Time is played, sought and followed; both pictures stand in the address.

import { binary, json, Newest } from "../api.js";
import { card, choice, fill, h, showTimes, table } from "../dom.js";
import { count, moment, plural } from "../format.js";
import { Names, rowOf } from "../keys.js";
import { gridOf, paintHeat, paintInstant } from "../paint.js";
import { none } from "../palette.js";
import { here, link, number, set } from "../place.js";
import { Picture, Tip } from "../picture.js";
import { dark, onTheme, still } from "../theme.js";
import { accesses, ownerText, readHeat, readInstant, replicasOf } from "../tiles.js";
import { chip } from "./overview.js";

/** @typedef {import("../tiles.js").Heat} Heat */
/** @typedef {import("../tiles.js").Instant} Instant */
/** @typedef {import("../place.js").Place} Place */

/** @type {[string, string][]} */
const orders = [["heat", "hottest first"], ["moves", "most moved first"], ["key", "by table and row"], ["owner", "by owner"]];
/** @type {[string, string][]} */
const speeds = [["0.1", "0.1×"], ["0.5", "0.5×"], ["1", "1×"], ["4", "4×"], ["20", "20×"], ["all", "all in 20 s"]];
const tall = 400; // of a picture at the most, in pixels of the page
const pageOfTable = 50;

/**
 * @param {HTMLElement} main
 * @param {import("../main.js").App} app
 * @param {Place} place
 * @returns {import("../main.js").View}
 */
export function open(main, app, place) {
  return new Allocation(main, app, place);
}

class Allocation {
  /**
   * @param {HTMLElement} main
   * @param {import("../main.js").App} app
   * @param {Place} place
   */
  constructor(main, app, place) {
    this.app = app;
    this.place = place;
    /** @type {Heat | null} */
    this.heat = null;
    /** @type {Instant | null} */
    this.instant = null;
    /** @type {import("../paint.js").Grid | null} */
    this.grid = null;
    this.cursor = { row: 0, col: 0, shown: false };
    this.square = -1; // under the pointer
    this.frame = 0;
    this.due = { heat: false, instant: false };
    this.caughtUp = false; // whether all that there was had been read when it was asked for
    this.loop = 0; // of playing; 0: stopped
    this.wrote = 0; // when the address was written while playing
    this.tablePage = 0;
    this.tip = new Tip();
    this.names = new Names(app.run, () => this.drawTop());
    /** Where the time is: null follows the end. @type {number | null} */
    this.t = number(place.with, "t");
    this.newestHeat = new Newest((s) => binary("api/heat", this.heatParams(), s), (b) => this.gotHeat(readHeat(b)), app.failed);
    this.newestInstant = new Newest((s) => binary("api/instant", { ...this.selection(), t: this.now() }, s), (b) => this.gotInstant(readInstant(b)), app.failed);
    this.newestTable = new Newest((s) => json("api/keys", this.tableParams(), s), (k) => this.showTable(k), app.failed);
    this.themed = onTheme(() => this.redraw());
    this.build(main);
    this.showControls();
    this.newestHeat.want();
    this.newestInstant.want();
  }

  /** @param {HTMLElement} main */
  build(main) {
    this.controls = h("div", { class: "tools-row" });
    this.owners = h("div", { class: "owners", role: "group", "aria-label": "Show one node only" });
    this.over = new Picture("Keys by time: each line is a key or several, each column a time, its colour the owner. Arrow keys move, Enter shows the time, plus and minus zoom, Escape shows all.", {
      resized: () => { this.redraw(); this.newestHeat.want(); },
      top: () => this.drawTop(),
      pointed: (x, y, e) => this.pointed(x, y, e),
      left: () => { this.cursor.shown = false; this.tip.hide(); this.drawTop(); },
      clicked: (x, y) => this.clicked(x, y),
      opened: (x, y) => this.openKey(this.keyAt(this.cellAt(x, y).row)),
      dragged: (from, to) => this.zoomTo(from, to),
      key: (e) => this.overKey(e),
    });
    this.over.setHeight(heightOf(this.app.run.keys));
    this.axis = h("div", { class: "axis", "aria-hidden": "true" });
    this.read = h("p", { class: "read", "aria-live": "polite" });
    this.aboutOver = h("p", {});
    this.whole = h("button", { type: "button", click: () => this.showAll() }, "Show all");
    const over = card("Over time", null, [this.whole], this.over.el, this.axis, this.read, marks());
    over.querySelector("header h2")?.after(this.aboutOver);

    this.play = h("button", { type: "button", class: "main", click: () => this.toggle() }, "▶ Play");
    this.seek = h("input", { type: "range", min: 0, max: 1, step: "any", "aria-label": "Time", input: () => this.sought() });
    this.time = h("output", { class: "key" });
    this.follow = h("button", { type: "button", click: () => this.toEnd() }, "To the end");
    const player = h("section", { class: "card", "aria-label": "Playing" }, h("div", { class: "tools-row" }, this.play, h("span", { class: "grow" }, this.seek, this.time), this.speedChoice(), this.follow));

    this.at = new Picture("Keys at an instant: a square a key, its colour the owner. Arrow keys move, Enter opens the key.", {
      resized: () => this.layInstant(),
      top: () => this.drawTop(),
      pointed: (x, y, e) => this.pointedSquare(x, y, e),
      left: () => { this.square = -1; this.tip.hide(); this.drawTop(); },
      clicked: () => this.openKey(this.instant?.key[this.square]),
      key: (e) => this.squareKey(e),
    });
    this.at.setHeight(120);
    this.aboutAt = h("p", {});
    this.readAt = h("p", { class: "read", "aria-live": "polite" });
    const at = card("At an instant", null, [], this.at.el, this.readAt);
    at.querySelector("header h2")?.after(this.aboutAt);

    this.list = h("div", {});
    this.more = h("details", { toggle: () => this.wantTable() }, h("summary", {}, "The same keys as a table"), this.list);
    this.more.open = this.place.with.get("as") === "table";
    main.append(h("section", { class: "card", "aria-label": "What is shown" }, this.controls), over, player, at, h("section", { class: "card" }, this.more));
  }

  speedChoice() {
    return choice("Speed", speeds, this.place.with.get("speed") ?? "all", (v) => set({ speed: v === "all" ? null : v }, true));
  }

  showControls() {
    const { with: params } = this.place;
    const search = h("input", { type: "search", placeholder: "name, table:row or number", value: params.get("q") ?? "", "aria-label": "Search keys" });
    /** @type {ReturnType<typeof setTimeout>} */
    let timer;
    search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.change({ q: search.value.trim() || null, top: null, rows: null }), 250);
    });
    const tables = this.app.run.tables;
    /** @type {[string, string][]} */
    const all = [["", "all"], ...tables.map((t) => /** @type {[string, string]} */ ([t.name, t.name]))];
    this.shade = h("button", { type: "button", "aria-pressed": this.shaded(), click: () => this.change({ heat: this.shaded() ? null : 1 }) }, "Shade by accesses");
    fill(/** @type {Element} */ (this.controls), search,
      tables.length > 1 ? choice("Table", all, params.get("table") ?? "", (v) => this.change({ table: v || null, top: null, rows: null })) : null,
      choice("Order", orders, params.get("sort") ?? "heat", (v) => this.change({ sort: v === "heat" ? null : v })), this.shade, /** @type {Element} */ (this.owners));
    this.showOwners();
  }

  showOwners() {
    const only = this.only();
    const button = (/** @type {number} */ node) => h("button", { type: "button", "aria-pressed": only === node, click: () => this.change({ only: this.only() === node ? null : node }) },
      chip(node), `node ${node}`);
    fill(/** @type {Element} */ (this.owners), this.app.run.nodes.map((n) => button(n.id)));
  }

  /** Whether keys are shaded by their accesses. */
  shaded() {
    return this.place.with.get("heat") === "1";
  }

  only() {
    return number(this.place.with, "only") ?? -1;
  }

  /**
   * Changes what is shown, here and in the address.
   * @param {Record<string, string | number | null>} params
   */
  change(params) {
    set(params, true);
    this.moved(here());
  }

  /** @param {Place} place */
  moved(place) {
    const before = this.place.with;
    const changed = (/** @type {string[]} */ ...names) => names.some((n) => before.get(n) !== place.with.get(n));
    this.place = place;
    if (!this.loop) {
      this.t = number(place.with, "t");
    }
    this.shade?.setAttribute("aria-pressed", String(this.shaded()));
    if (changed("only")) {
      this.showOwners();
    }
    if (changed("from", "to", "top", "rows", "sort", "table", "q")) {
      this.newestHeat.want();
    }
    if (changed("t", "sort", "table", "q")) {
      this.newestInstant.want();
      this.wantTable();
    }
    this.redraw();
  }

  /** @param {import("../types.js").State} state */
  ticked(state) {
    const to = number(this.place.with, "to");
    if (to === null || !this.caughtUp || this.heat && this.heat.to < to) {
      this.newestHeat.wantWithin(900);
    }
    if (!this.caughtUp) {
      this.newestInstant.wantWithin(900);
    }
    this.caughtUp = state.done; // what is asked for from now on has all
    if (this.t === null && !this.loop && this.instant?.t !== state.to) {
      this.newestInstant.wantWithin(450);
    }
    this.drawTime();
  }

  close() {
    this.stop();
    cancelAnimationFrame(this.frame);
    [this.newestHeat, this.newestInstant, this.newestTable, this.over, this.at, this.tip, this.names].forEach((x) => x?.close());
    this.themed();
  }

  // What is asked for.

  selection() {
    const p = this.place.with;
    return { sort: p.get("sort") ?? "heat", table: p.get("table"), q: p.get("q") };
  }

  heatParams() {
    const p = this.place.with;
    const canvas = this.over?.canvas;
    return { ...this.selection(), from: number(p, "from"), to: number(p, "to"), offset: number(p, "top"), limit: number(p, "rows"),
      cols: Math.min(2000, canvas?.width ?? 1000), rows: Math.min(2000, canvas?.height ?? tall) };
  }

  tableParams() {
    const { sort, ...rest } = this.selection();
    return { ...rest, sort: sort === "owner" ? "key" : sort, t: this.now(), offset: this.tablePage * pageOfTable, limit: pageOfTable };
  }

  /** The time that is shown. */
  now() {
    return this.t ?? this.end();
  }

  end() {
    return this.app.run.to;
  }

  // What came.

  /** @param {Heat} heat */
  gotHeat(heat) {
    this.app.fine();
    this.heat = heat;
    this.over?.setHeight(heightOf(Math.min(heat.keys, heat.rows * heat.perRow)));
    const each = heat.perRow > 1 ? `, ${count(heat.perRow)} to a line: the colour is of most of them` : "";
    const order = orders.find(([name]) => name === this.selection().sort)?.[1] ?? "";
    fill(/** @type {Element} */ (this.aboutOver), heat.rows ? `${plural(heat.keys, "key")} from top to bottom (${order})${each}` : "no key is like that");
    const zoomed = ["from", "to", "top", "rows"].some((n) => this.place.with.has(n));
    /** @type {HTMLElement} */ (this.whole).hidden = !zoomed;
    showTimes(/** @type {HTMLElement} */ (this.axis), heat.from, heat.to);
    this.later("heat");
  }

  /** @param {Instant} instant */
  gotInstant(instant) {
    this.app.fine();
    const sizeChanged = instant.n !== this.instant?.n;
    this.instant = instant;
    if (sizeChanged) {
      this.layInstant();
    }
    const owned = new Uint32Array(256);
    for (const owner of instant.owner) {
      owned[owner] = (owned[owner] ?? 0) + 1;
    }
    const owners = [...owned].map((n, o) => n && o !== none ? `node ${o}: ${count(n)}` : "").filter(Boolean);
    const shares = [...owners.slice(0, 16), owners.length > 16 ? `${owners.length - 16} more` : ""].filter(Boolean).join(" · ");
    fill(/** @type {Element} */ (this.aboutAt), `${moment(instant.t, this.end())} — ${shares || "nobody owns a key yet"}`);
    this.later("instant");
  }

  layInstant() {
    const picture = this.at;
    if (!picture || !this.instant) {
      return;
    }
    const width = Math.max(1, picture.canvas.width);
    this.grid = gridOf(this.instant.n, width, tall * picture.scale, picture.scale);
    picture.setHeight(Math.max(28, this.grid.lines * this.grid.size / picture.scale));
    this.later("instant");
  }

  // Drawing: all of it in frames.

  redraw() {
    this.later("heat");
    this.later("instant");
  }

  /** @param {"heat" | "instant"} what */
  later(what) {
    this.due[what] = true;
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => this.draw());
    }
  }

  draw() {
    this.frame = 0;
    const look = { only: this.only(), dark: dark(), heat: this.shaded() };
    if (this.due.heat && this.heat && this.over) {
      paintHeat(this.over.ctx, this.heat, look);
    }
    if (this.due.instant && this.instant && this.grid && this.at) {
      paintInstant(this.at.ctx, this.instant, this.grid, look);
    }
    this.due = { heat: false, instant: false };
    this.drawTop();
  }

  drawTop() {
    this.drawTime();
    this.drawCursor();
    this.drawSquare();
  }

  /** The line of the instant in key × time, and the seek bar. */
  drawTime() {
    const picture = this.over;
    if (!picture || !this.heat) {
      return;
    }
    picture.clearTop();
    const { from, to } = this.heat;
    const x = (this.now() - from) / (to - from) * picture.over.width;
    const ctx = picture.top;
    ctx.lineWidth = 4 * picture.scale;
    ctx.strokeStyle = "rgb(255 255 255 / 80%)";
    line(ctx, x, 0, x, picture.over.height);
    ctx.lineWidth = 1.5 * picture.scale;
    ctx.strokeStyle = "#10161b";
    line(ctx, x, 0, x, picture.over.height);
    const seek = /** @type {HTMLInputElement} */ (this.seek);
    seek.max = String(this.end());
    seek.value = String(this.now());
    const text = `${moment(this.now(), this.end())} of ${moment(this.end(), this.end())}`;
    seek.setAttribute("aria-valuetext", text);
    /** @type {HTMLOutputElement} */ (this.time).value = text;
    /** @type {HTMLButtonElement} */ (this.follow).disabled = this.t === null;
  }

  drawCursor() {
    const { heat, over } = this;
    if (!heat || !over || !this.cursor.shown) {
      return;
    }
    const { width, height } = over.over;
    const top = this.cursor.row * height / heat.rows;
    const left = this.cursor.col * width / heat.cols;
    outline(over.top, left, top, Math.max(5 * over.scale, width / heat.cols), Math.max(5 * over.scale, height / heat.rows), over.scale);
  }

  /** Outlines the square of the key that is pointed at, in either picture. */
  drawSquare() {
    const { at, grid, instant } = this;
    if (!at || !grid || !instant) {
      return;
    }
    at.clearTop();
    const first = this.cursor.shown && this.heat ? (number(this.place.with, "top") ?? 0) + this.cursor.row * this.heat.perRow : this.square;
    const last = this.cursor.shown && this.heat ? Math.min(instant.n, first + this.heat.perRow, first + 400) : first + 1;
    for (let i = first; i >= 0 && i < last && i < instant.n; i++) {
      outline(at.top, i % grid.across * grid.size, Math.floor(i / grid.across) * grid.size, Math.max(grid.size, 4 * at.scale), Math.max(grid.size, 4 * at.scale), at.scale);
    }
  }

  // Pointing, by mouse and keys.

  /**
   * @param {number} x
   * @param {number} y
   */
  cellAt(x, y) {
    const rows = this.heat?.rows ?? 1;
    const cols = this.heat?.cols ?? 1;
    return { row: Math.min(rows - 1, Math.floor(y * rows)), col: Math.min(cols - 1, Math.floor(x * cols)) };
  }

  /** @param {number} row */
  keyAt(row) {
    return this.heat?.key[row];
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {MouseEvent} e
   */
  pointed(x, y, e) {
    if (!this.heat?.rows) {
      return;
    }
    this.cursor = { ...this.cellAt(x, y), shown: true };
    this.tip.show(e, this.describe());
    this.drawTop();
  }

  /** What lies under the cursor of key × time, in lines. */
  describe() {
    const heat = this.heat;
    if (!heat) {
      return [];
    }
    const { row, col } = this.cursor;
    const cell = row * heat.cols + col;
    const key = heat.key[row] ?? 0;
    const t = heat.from + (col + 1) * (heat.to - heat.from) / heat.cols;
    const replicas = (heat.replicas[cell] ?? 0) / 4;
    const agree = heat.agree[cell] ?? 255;
    const who = ownerText(heat.owner[cell]) + (heat.perRow > 1 && agree < 255 && heat.owner[cell] !== none ? `, of ${Math.round(agree / 2.55)} % of them` : "");
    return [h("b", {}, heat.perRow > 1 ? `${this.names.of(key)} and ${heat.perRow - 1} more` : this.names.of(key)), `${moment(t, heat.to - heat.from)}: ${who}`,
      replicas ? `${+replicas.toFixed(2)} replicas${heat.perRow > 1 ? " a key" : ""}` : "no replica", rate(heat.heat[cell] ?? 0)];
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  clicked(x, y) {
    const heat = this.heat;
    if (heat) {
      this.cursor = { ...this.cellAt(x, y), shown: true };
      this.seekTo(heat.from + x * (heat.to - heat.from));
    }
  }

  /** @param {number | undefined} key */
  openKey(key) {
    if (key !== undefined) {
      location.hash = link("key", rowOf(this.app.run, key));
    }
  }

  /** @param {KeyboardEvent} e */
  overKey(e) {
    const heat = this.heat;
    if (!heat?.rows) {
      return false;
    }
    const c = this.cursor;
    const big = e.shiftKey ? 10 : 1;
    /** @type {Record<string, () => void>} */
    const does = {
      ArrowLeft: () => { c.col -= big; }, ArrowRight: () => { c.col += big; }, ArrowUp: () => { c.row -= big; }, ArrowDown: () => { c.row += big; },
      Home: () => { c.col = 0; }, End: () => { c.col = heat.cols - 1; },
      Enter: () => this.seekTo(heat.from + (c.col + 1) * (heat.to - heat.from) / heat.cols),
      o: () => this.openKey(this.keyAt(c.row)),
      "+": () => this.zoomBy(0.5), "-": () => this.zoomBy(2), Escape: () => this.showAll(), " ": () => this.toggle(),
    };
    const act = does[e.key];
    if (!act) {
      return false;
    }
    act();
    c.row = Math.min(heat.rows - 1, Math.max(0, c.row));
    c.col = Math.min(heat.cols - 1, Math.max(0, c.col));
    c.shown = true;
    fill(/** @type {Element} */ (this.read), this.describe().map((l) => l instanceof Node ? l.textContent : l).join(". "));
    this.drawTop();
    return true;
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {MouseEvent} e
   */
  pointedSquare(x, y, e) {
    const { at, grid, instant } = this;
    if (!at || !grid || !instant) {
      return;
    }
    const i = Math.floor(y * at.canvas.height / grid.size) * grid.across + Math.min(grid.across - 1, Math.floor(x * at.canvas.width / grid.size));
    this.square = i < instant.n && x * at.canvas.width < grid.across * grid.size ? i : -1;
    if (this.square < 0) {
      this.tip.hide();
    } else {
      this.tip.show(e, this.describeSquare());
    }
    this.drawTop();
  }

  describeSquare() {
    const instant = this.instant;
    const i = this.square;
    if (!instant || i < 0) {
      return [];
    }
    const replicas = replicasOf(instant, i);
    return [h("b", {}, this.names.of(instant.key[i] ?? 0)), ownerText(instant.owner[i]), replicas.length ? "replicas: " + replicas.map((n) => `node ${n}`).join(", ") : "no replica",
      `${count(accesses(instant.heat[i] ?? 0))} accesses in the run`];
  }

  /** @param {KeyboardEvent} e */
  squareKey(e) {
    const n = this.instant?.n ?? 0;
    const across = this.grid?.across ?? 1;
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across };
    const step = steps[e.key];
    if (e.key === "Enter") {
      this.openKey(this.instant?.key[this.square]);
      return true;
    }
    if (e.key === " ") {
      this.toggle();
      return true;
    }
    if (step === undefined || n === 0) {
      return false;
    }
    this.cursor.shown = false;
    this.square = Math.min(n - 1, Math.max(0, this.square + step));
    fill(/** @type {Element} */ (this.readAt), this.describeSquare().map((l) => l instanceof Node ? l.textContent : l).join(". "));
    this.drawTop();
    return true;
  }

  // The part that key × time shows.

  /**
   * @param {[number, number]} a
   * @param {[number, number]} b
   */
  zoomTo(a, b) {
    const heat = this.heat;
    if (!heat) {
      return;
    }
    const range = heat.to - heat.from;
    const first = (number(this.place.with, "top") ?? 0) + Math.floor(a[1] * heat.rows) * heat.perRow;
    const rows = Math.max(1, (Math.ceil(b[1] * heat.rows) - Math.floor(a[1] * heat.rows)) * heat.perRow);
    this.change({ from: short(heat.from + a[0] * range), to: short(heat.from + b[0] * range), top: first, rows });
  }

  /** @param {number} factor */
  zoomBy(factor) {
    const heat = this.heat;
    if (!heat) {
      return;
    }
    const range = (heat.to - heat.from) * factor;
    const middle = heat.from + (this.cursor.col + 0.5) * (heat.to - heat.from) / heat.cols;
    const from = Math.max(0, middle - range / 2);
    const to = Math.min(this.end(), from + range);
    this.change(from <= 0 && to >= this.end() ? { from: null, to: null } : { from: short(from), to: short(to) });
  }

  showAll() {
    this.change({ from: null, to: null, top: null, rows: null });
  }

  // Time.

  /** @param {number} t */
  seekTo(t) {
    this.t = Math.max(0, Math.min(this.end(), t));
    set({ t: short(this.t) }, true);
    this.place = here();
    this.newestInstant.want();
    this.wantTable();
    this.drawTop();
  }

  sought() {
    this.seekTo(Number(/** @type {HTMLInputElement} */ (this.seek).value));
  }

  toEnd() {
    this.stop();
    this.change({ t: null });
    this.t = null;
    this.newestInstant.want();
  }

  toggle() {
    if (this.loop) {
      this.stop();
      return;
    }
    if (this.t === null || this.t >= this.end() - 1e-6) {
      this.t = this.heat?.from ?? 0;
    }
    /** @type {HTMLElement} */ (this.play).textContent = "❚❚ Pause";
    let last = performance.now();
    const step = (/** @type {number} */ now) => {
      if (!still() || now - last >= 1000) { // who wants less motion gets a picture a second
        this.advance((now - last) / 1000);
        last = now;
      }
      if (this.loop) {
        this.loop = requestAnimationFrame(step);
      }
    };
    this.loop = requestAnimationFrame(step);
  }

  /** @param {number} passed seconds */
  advance(passed) {
    const speed = here().with.get("speed");
    this.t = this.now() + passed * (speed && Number(speed) > 0 ? Number(speed) : this.end() / 20);
    if (this.t >= this.end()) {
      this.t = this.end();
      this.stop();
    }
    this.newestInstant.want();
    const now = performance.now();
    if (now - this.wrote > 1000) {
      this.wrote = now;
      set({ t: short(this.t) }, true);
    }
    this.drawTop();
  }

  stop() {
    if (!this.loop) {
      return;
    }
    cancelAnimationFrame(this.loop);
    this.loop = 0;
    /** @type {HTMLElement} */ (this.play).textContent = "▶ Play";
    if (this.t !== null && here().view === "allocation") {
      set({ t: short(this.t) }, true);
      this.place = here();
      this.wantTable();
    }
  }

  // The table.

  wantTable() {
    const open = this.more?.open ?? false;
    if ((here().with.get("as") === "table") !== open && here().view === "allocation") {
      set({ as: open ? "table" : null }, true);
      this.place = here();
    }
    if (open) {
      this.newestTable.want();
    }
  }

  /** @param {import("../types.js").Keys} keys */
  showTable(keys) {
    const pages = Math.max(1, Math.ceil(keys.total / pageOfTable));
    const turn = (/** @type {number} */ by) => { this.tablePage = Math.min(pages - 1, Math.max(0, this.tablePage + by)); this.newestTable.want(); };
    fill(/** @type {Element} */ (this.list),
      table(`Keys at ${moment(this.now(), this.end())}`, ["key", "name", "owner", "replicas at", "#accesses", "#not at once", "#moves", "#replicas set up", "#refreshes"],
        (keys.keys ?? []).map((k) => [h("a", { class: "key", href: link("key", rowOf(this.app.run, k.key)) }, rowOf(this.app.run, k.key)), k.name ?? "–", ownerText(k.owner),
          k.replicas?.length ? k.replicas.join(", ") : "–", count(k.accesses), count(k.missed), count(k.moves), count(k.copies), count(k.refreshes)])),
      h("div", { class: "tools-row" }, h("button", { type: "button", disabled: this.tablePage === 0, click: () => turn(-1) }, "Before"),
        `page ${this.tablePage + 1} of ${count(pages)}`, h("button", { type: "button", disabled: this.tablePage >= pages - 1, click: () => turn(1) }, "Next")));
  }
}

/**
 * How tall key × time is: each key a whole number of pixels, while they fit.
 * @param {number} keys
 */
function heightOf(keys) {
  return keys > tall * 1.4 || keys < 1 ? tall : keys * Math.min(24, Math.max(1, Math.floor(tall / keys)));
}

/**
 * How often keys are accessed, in words.
 * @param {number} code of the accesses a second
 */
function rate(code) {
  const n = accesses(code);
  return code === 0 ? "no access" : n < 2 ? "about an access a second, or less" : `about ${count(n)} accesses a second`;
}

/** What the marks in cells mean. */
function marks() {
  return h("p", { class: "notes" }, "Colour and number: the owner. Dark dots: replicas at other nodes, the more the denser. Empty: no node has said that it owns the key. Shaded by accesses: the paler, the fewer. Drag over a picture to see a part of it.");
}

/**
 * A time in an address: to the nanosecond, so that a link shows what was shown where it was made.
 * @param {number} t
 */
function short(t) {
  return +t.toFixed(9);
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {number} x1
 * @param {number} y1
 * @param {number} x2
 * @param {number} y2
 */
function line(ctx, x1, y1, x2, y2) {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

/**
 * A frame that is seen on every colour.
 * @param {CanvasRenderingContext2D} ctx
 * @param {number} x
 * @param {number} y
 * @param {number} w
 * @param {number} t
 * @param {number} scale
 */
function outline(ctx, x, y, w, t, scale) {
  ctx.lineWidth = 3.5 * scale;
  ctx.strokeStyle = "#ffffff";
  ctx.strokeRect(x, y, w, t);
  ctx.lineWidth = 1.5 * scale;
  ctx.strokeStyle = "#10161b";
  ctx.strokeRect(x, y, w, t);
}
