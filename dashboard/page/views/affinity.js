// Affinity: to which nodes keys belong. For each node the share of time that keys spent there and the moves to it; and
// how often keys are accessed, beside what the policy did with them.

import { json, Newest } from "../api.js";
import { card, choice, fill, h, table } from "../dom.js";
import { count, percent, plural, sentence } from "../format.js";
import { Names, rowOf } from "../keys.js";
import { css } from "../palette.js";
import { here, link, set } from "../place.js";
import { Picture, Tip } from "../picture.js";
import { colour, onTheme } from "../theme.js";
import { chip } from "./overview.js";

/** @typedef {import("../types.js").Affinity} Affinity */
/** @typedef {NonNullable<Affinity["techniques"]>[number]} Technique */

/** @type {[string, string, string][]} name, text and colour, in the order of the lanes */
const techniques = [
  ["replicates", "replicated", "--wait-0"],
  ["both", "moved and replicated", "--wait-2"],
  ["moves", "moved", "--server"],
  ["stays", "stayed", "--compute"],
];

/**
 * @param {HTMLElement} main
 * @param {import("../main.js").App} app
 * @param {import("../place.js").Place} place
 * @returns {import("../main.js").View}
 */
export function open(main, app, place) {
  return new AffinityView(main, app, place);
}

class AffinityView {
  /**
   * @param {HTMLElement} main
   * @param {import("../main.js").App} app
   * @param {import("../place.js").Place} place
   */
  constructor(main, app, place) {
    this.app = app;
    this.place = place;
    /** @type {Technique[]} */
    this.points = [];
    /** @type {[number, number][]} */
    this.placed = [];
    this.pointedAt = -1;
    this.part = ""; // of the keys, of which the techniques are known; empty: all
    this.tip = new Tip();
    this.names = new Names(app.run, () => undefined);
    this.controls = h("div", { class: "tools-row" });
    this.about = h("p", { class: "read", role: "status" });
    this.nodes = h("div", {});
    this.sums = h("div", {});
    this.list = h("div", {});
    this.picture = new Picture("Keys by how often they are accessed, to the right the more, in a lane for each technique. Arrow keys go through the keys, Enter opens one. The table below has the same.", {
      resized: () => this.draw(),
      pointed: (x, y, e) => this.pointed(x, y, e),
      left: () => { this.tip.hide(); },
      clicked: () => this.openKey(),
      key: (e) => this.typed(e),
    });
    this.picture.setHeight(290);
    this.read = h("p", { class: "read", "aria-live": "polite" });
    this.which = h("p", {});
    const dots = card("Access frequency and technique", null, [], this.picture.el, this.read);
    dots.querySelector("header h2")?.after(this.which);
    main.append(h("section", { class: "card", "aria-label": "Which keys" }, this.controls, this.about),
      h("div", { class: "pair" }, card("Where they were", "share of time, and moves", [], this.nodes), card("What was done with them", null, [], this.sums)),
      dots,
      h("section", { class: "card" }, h("details", {}, h("summary", {}, "The hottest keys as a table"), this.list)));
    this.newest = new Newest((s) => json("api/affinity", this.selection(), s), (a) => this.show(a), app.failed);
    this.themed = onTheme(() => this.draw());
    this.showControls();
    this.newest.want();
  }

  selection() {
    const p = this.place.with;
    return { keys: p.get("keys"), table: p.get("table"), q: p.get("q") };
  }

  showControls() {
    const p = this.place.with;
    const search = h("input", { type: "search", placeholder: "name, table:row or number", "aria-label": "Search keys", value: p.get("q") ?? "" });
    /** @type {ReturnType<typeof setTimeout>} */
    let timer;
    search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.change({ q: search.value.trim() || null, keys: null }), 250);
    });
    /** @type {[string, string][]} */
    const tables = [["", "all"], ...this.app.run.tables.map((t) => /** @type {[string, string]} */ ([t.name, t.name]))];
    const keys = p.get("keys");
    fill(this.controls, search, choice("Table", tables, p.get("table") ?? "", (v) => this.change({ table: v || null, keys: null })),
      keys ? h("button", { type: "button", click: () => { this.change({ keys: null }); this.showControls(); } }, `Only ${keys.split(",").map((k) => rowOf(this.app.run, Number(k))).join(", ")} ✕`) : null);
  }

  /** @param {Record<string, string | number | null>} params */
  change(params) {
    set(params, true);
    this.moved(here());
  }

  /** @param {import("../place.js").Place} place */
  moved(place) {
    this.place = place;
    this.newest.want();
  }

  ticked() {
    this.newest.wantWithin(1900);
  }

  /** @param {Affinity} a */
  show(a) {
    this.app.fine();
    this.about.textContent = a.keys === 0 ? "No traced key is called like that." : `${plural(a.keys, "key")}`;
    this.showNodes(a);
    this.points = a.techniques ?? [];
    this.part = this.points.length < a.keys ? `of the ${thousands(this.points.length)} hottest` : "";
    this.which.textContent = ["a dot a key", this.part].filter(Boolean).join(", ");
    this.showSums();
    fill(this.list, table("The hottest keys", ["key", "name", "technique", "#accesses", "#moves", "#replicas set up", "#time with a replica"], this.points.slice(0, 200).map((k) =>
      [h("a", { class: "key", href: link("key", rowOf(this.app.run, k.key)) }, rowOf(this.app.run, k.key)), k.name ?? "–", textOf(k.technique), count(k.accesses), count(k.moves), count(k.copies), percent(k.replicated)])));
    this.draw();
  }

  /** @param {Affinity} a */
  showNodes(a) {
    const bar = (/** @type {number} */ node, /** @type {number} */ owned) => {
      const el = h("span", { class: node >= 8 ? "hatch" : "" });
      el.style.width = `${100 * Math.min(1, owned)}%`;
      el.style.backgroundColor = css(node);
      return h("div", { class: "meter wide", "aria-hidden": "true" }, el);
    };
    fill(this.nodes, table("Of these keys, by node", ["node", "share of time", "#owned", "#as replica", "#moves to it", "#replicas", "#accesses", "#not at once"],
      (a.nodes ?? []).map((n) => [h("span", { class: "nowrap" }, chip(n.id), ` node ${n.id}`), bar(n.id, n.owned), percent(n.owned), percent(n.replicated), count(n.moves), count(n.copies), count(n.accesses), count(n.missed)])));
  }

  showSums() {
    const all = this.points.length;
    const accesses = this.points.reduce((s, k) => s + k.accesses, 0);
    fill(this.sums, h("div", { class: "shares" }, techniques.map(([name, text, paint]) => {
      const of = this.points.filter((k) => k.technique === name);
      const part = all ? of.length / all : 0;
      const bar = h("span", {});
      bar.style.width = `${100 * part}%`;
      bar.style.backgroundColor = `var(${paint})`;
      return h("div", { class: "row" }, h("span", {}, text), h("b", {}, plural(of.length, "key")), h("div", { class: "meter", "aria-hidden": "true" }, bar),
        h("span", { class: "about" }, `${percent(accesses ? of.reduce((s, k) => s + k.accesses, 0) / accesses : 0)} of the accesses`));
    })), this.part ? h("p", { class: "notes" }, `${sentence(this.part)} keys of the selection.`) : null);
  }

  draw() {
    const { ctx, scale } = this.picture;
    const width = this.picture.canvas.width / scale;
    const height = this.picture.canvas.height / scale;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.fillStyle = colour("--card");
    ctx.fillRect(0, 0, width, height);
    const left = width < 500 ? 12 : 160;
    const most = Math.max(1, ...this.points.map((p) => p.accesses));
    const decades = Math.log10(most + 1);
    const x = (/** @type {number} */ n) => left + Math.log10(n + 1) / decades * (width - left - 14);
    const lane = (height - 26) / techniques.length;
    ctx.font = `13px system-ui, "Liberation Sans", sans-serif`;
    ctx.textBaseline = "middle";
    techniques.forEach(([, text], i) => {
      ctx.fillStyle = colour(i % 2 ? "--card" : "--page");
      ctx.fillRect(0, i * lane, width, lane);
      ctx.fillStyle = colour("--ink");
      ctx.textAlign = "left";
      ctx.fillText(text, 8, i * lane + (width < 500 ? 10 : lane / 2));
    });
    ctx.fillStyle = colour("--soft");
    ctx.font = `12px system-ui, "Liberation Sans", sans-serif`;
    for (let d = 0; d <= decades; d++) {
      ctx.textAlign = d === 0 ? "left" : "center";
      ctx.fillText(d === 0 ? "0 accesses" : count(10 ** d), x(d === 0 ? 0 : 10 ** d), height - 11);
    }
    this.placed = this.points.map((p) => {
      const i = Math.max(0, techniques.findIndex(([name]) => name === p.technique));
      return [x(p.accesses), i * lane + lane * (0.12 + 0.76 * scatter(p.key))];
    });
    ctx.globalAlpha = 0.75;
    const paints = new Map(techniques.map(([name, , paint]) => [name, colour(paint)]));
    this.points.forEach((p, i) => {
      const [px, py] = this.placed[i] ?? [0, 0];
      ctx.fillStyle = paints.get(p.technique) ?? "#808080";
      ctx.beginPath();
      ctx.arc(px, py, 3.2, 0, 7);
      ctx.fill();
    });
    ctx.globalAlpha = 1;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {MouseEvent} e
   */
  pointed(x, y, e) {
    const px = x * this.picture.el.clientWidth;
    const py = y * this.picture.el.clientHeight;
    let best = 14 ** 2;
    this.pointedAt = -1;
    this.placed.forEach(([a, b], i) => {
      const d = (a - px) ** 2 + (b - py) ** 2;
      if (d < best) {
        best = d;
        this.pointedAt = i;
      }
    });
    if (this.pointedAt < 0) {
      this.tip.hide();
    } else {
      this.tip.show(e, this.describe());
    }
    this.mark();
  }

  describe() {
    const p = this.points[this.pointedAt];
    return p ? [h("b", {}, p.name ?? rowOf(this.app.run, p.key)), textOf(p.technique), `${count(p.accesses)} accesses, ${count(p.moves)} moves`, `${percent(p.replicated)} of the time with a replica`] : [];
  }

  mark() {
    const { top, scale } = this.picture;
    this.picture.clearTop();
    const at = this.placed[this.pointedAt];
    if (at) {
      top.strokeStyle = colour("--ink");
      top.lineWidth = 2 * scale;
      top.beginPath();
      top.arc(at[0] * scale, at[1] * scale, 6 * scale, 0, 7);
      top.stroke();
    }
  }

  /** @param {KeyboardEvent} e */
  typed(e) {
    /** @type {Record<string, number>} */
    const steps = { ArrowRight: -1, ArrowUp: -1, ArrowLeft: 1, ArrowDown: 1 };
    const step = steps[e.key];
    if (e.key === "Enter") {
      this.openKey();
      return true;
    }
    if (step === undefined || !this.points.length) {
      return false;
    }
    this.pointedAt = Math.min(this.points.length - 1, Math.max(0, this.pointedAt + step));
    this.read.textContent = this.describe().map((l) => l instanceof Node ? l.textContent : l).join(". ");
    this.mark();
    return true;
  }

  openKey() {
    const p = this.points[this.pointedAt];
    if (p) {
      location.hash = link("key", rowOf(this.app.run, p.key));
    }
  }

  close() {
    this.newest.close();
    this.picture.close();
    this.names.close();
    this.tip.close();
    this.themed();
  }
}

/**
 * A whole number with its thousands apart.
 * @param {number} n
 */
function thousands(n) {
  return n.toLocaleString("en");
}

/** @param {string} technique */
function textOf(technique) {
  return techniques.find(([name]) => name === technique)?.[1] ?? technique;
}

/**
 * A number from 0 to 1 that is the same for a key each time, so that dots of equal accesses lie apart.
 * @param {number} key
 */
function scatter(key) {
  return (Math.imul(key + 1, 0x9e3779b1) >>> 8) / 2 ** 24;
}
