// One key: in words why it is where it is, and its life as lanes.

import { json, Newest } from "../api.js";
import { card, fill, h, showTimes, table } from "../dom.js";
import { count, moment, percent, plural, seconds } from "../format.js";
import { rowOf } from "../keys.js";
import { drawLanes, laneHeight, laneStart, nodesOf } from "../lanes.js";
import { here, link, number, set } from "../place.js";
import { Picture, Tip } from "../picture.js";
import { onTheme } from "../theme.js";
import { ownerText } from "../tiles.js";
import { chip } from "./overview.js";

/** @typedef {import("../types.js").Key} Key */
/** @typedef {import("../types.js").KeyLine} KeyLine */
/** @typedef {import("../place.js").Place} Place */

/**
 * @param {HTMLElement} main
 * @param {import("../main.js").App} app
 * @param {Place} place
 * @returns {import("../main.js").View}
 */
export function open(main, app, place) {
  const finder = new Finder(app, place);
  main.append(finder.el);
  if (!place.subject) {
    finder.want();
    return { close: () => finder.close() };
  }
  const life = new Life(main, app, place);
  return {
    moved: (p) => life.moved(p),
    ticked: (state) => life.ticked(state),
    close: () => {
      finder.close();
      life.close();
    },
  };
}

/** Finds keys by their names. */
class Finder {
  /**
   * @param {import("../main.js").App} app
   * @param {Place} place
   */
  constructor(app, place) {
    this.app = app;
    this.found = h("div", { class: "found" });
    this.about = h("p", { class: "read", role: "status" });
    this.input = h("input", { type: "search", placeholder: "name, table:row or number", "aria-label": "Find a key", value: place.subject });
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.want(), 200);
    });
    const form = h("form", { class: "tools-row", role: "search", submit: (/** @type {Event} */ e) => this.go(e) }, this.input, h("button", { type: "submit" }, "Show"));
    this.el = place.subject ? h("section", { class: "card slim" }, form, this.about, this.found) : card("Find a key", "hottest first", [form], this.about, this.found);
    this.about.hidden = true;
    this.newest = new Newest((s) => json("api/keys", { q: this.input.value.trim(), limit: 40 }, s), (k) => this.show(k), app.failed);
  }

  want() {
    this.newest.want();
  }

  /** @param {import("../types.js").Keys} keys */
  show(keys) {
    this.app.fine();
    this.about.hidden = false;
    this.about.textContent = keys.total === 0 ? "No traced key is called like that." : `${plural(keys.total, "key")} found`;
    fill(this.found, (keys.keys ?? []).map((k) => h("a", { href: link("key", rowOf(this.app.run, k.key)) },
      h("span", { class: "key" }, rowOf(this.app.run, k.key), k.name ? ` ${k.name}` : ""), h("span", { class: "soft small" }, `${ownerText(k.owner)} · ${count(k.accesses)} accesses · ${count(k.moves)} moves`))));
  }

  /** @param {Event} e */
  go(e) {
    e.preventDefault();
    const text = this.input.value.trim();
    if (/^\d+$|:\d+$/.test(text)) {
      location.hash = link("key", text);
    } else {
      this.want();
    }
  }

  close() {
    clearTimeout(this.timer);
    this.newest.close();
  }
}

/** Shows the life of a key. */
class Life {
  /**
   * @param {HTMLElement} main
   * @param {import("../main.js").App} app
   * @param {Place} place
   */
  constructor(main, app, place) {
    this.caughtUp = false; // whether all that there was had been read when it was asked for
    this.app = app;
    this.place = place;
    /** @type {Key | null} */
    this.key = null;
    this.tip = new Tip();
    this.words = h("div", { class: "words" }, h("p", { class: "empty" }, "Reading the key's life…"));
    this.axis = h("div", { class: "axis", "aria-hidden": "true" });
    this.read = h("p", { class: "read", "aria-live": "polite" });
    this.nodes = h("div", {});
    this.decided = h("div", {});
    this.tools = h("span", { class: "tools-row" });
    this.picture = new Picture("The key's life: a lane for the owner, and for each node what copy it had, its intents, accesses and the age of its replica. The table below has the same. Plus and minus zoom, arrows move, Escape shows all.", {
      resized: () => this.draw(),
      top: () => this.picture.clearTop(),
      pointed: (x, _y, e) => this.pointed(x, e),
      left: () => this.tip.hide(),
      clicked: () => undefined,
      dragged: (a, b) => this.zoom(this.time(a[0]), this.time(b[0])),
      key: (e) => this.typed(e),
    });
    this.title = h("h2", { class: "key" }, place.subject);
    this.whole = h("button", { type: "button", click: () => this.showAll() }, "Show all");
    const life = card("Life", "drag to see a part of it", [this.whole], this.picture.el, this.axis, this.read, legend());
    main.append(h("section", { class: "card" }, h("header", {}, this.title, h("div", { class: "tools" }, this.tools)), this.words), life,
      card("Decisions", "and from what, the last first", [], this.decided), card("By node", null, [], this.nodes));
    this.called = place.subject; // until it is known, of a name, which row that is
    this.newest = new Newest((s) => json("api/key/" + encodeURIComponent(this.called), this.range(), s), (k) => this.show(k), (err) => this.refused(err));
    this.themed = onTheme(() => this.draw());
    this.newest.want();
  }

  range() {
    return { from: number(this.place.with, "from"), to: number(this.place.with, "to") };
  }

  shown() {
    return { from: number(this.place.with, "from") ?? 0, to: number(this.place.with, "to") ?? Math.max(this.app.run.to, 1e-3) };
  }

  /** @param {unknown} err */
  refused(err) {
    this.app.failed(err);
    if (!this.key) {
      fill(this.words, h("p", { class: "empty" }, "There is nothing to show of it."));
    }
  }

  /** @param {Key} key */
  show(key) {
    this.app.fine();
    this.key = key;
    const row = rowOf(this.app.run, key.key);
    this.called = row;
    fill(this.title, key.name ? `${key.name} ` : "", key.name ? h("span", { class: "soft" }, row) : row);
    fill(this.tools, h("a", { href: link("affinity", undefined, { keys: key.key }) }, "Affinity"), h("a", { href: link("allocation", undefined, { q: row }) }, "In the allocation"));
    fill(this.words, h("p", {}, key.why), h("details", { class: "small", open: this.words.querySelector("details")?.open ?? false }, h("summary", {}, "All that is known, as godwit explain writes it"),
      h("ul", { class: "key" }, (key.text ?? []).map((t) => h("li", {}, t)))), key.shortened ? h("p", { class: "notes" }, "It has more events than a picture can show: they are thinned out. Drag over a part to see all of it.") : null);
    this.showDecisions(key);
    this.showNodes(key);
    this.picture.setHeight(laneHeight(key));
    this.draw();
  }

  /** @param {Key} key */
  showDecisions(key) {
    const list = key.decisions ?? [];
    fill(this.decided, list.length === 0 ? h("p", { class: "empty" }, "None was recorded: no node asked for the key, or keys changed too often to write down those of this one, or the trace is of a version that has none.")
      : table("What was decided about the key", ["time", "what, and why"], list.map((d) => [moment(d.t, this.app.run.to), h("span", {}, chip(d.node), ` ${d.text}`)])));
  }

  /** @param {Key} key */
  showNodes(key) {
    const nodes = nodesOf(key);
    fill(this.nodes, nodes.length === 0 ? h("p", { class: "empty" }, "No node had anything to do with it.") : table("What each node had of it", ["node", "#owned it", "#moves here", "#replicas", "#refreshes", "#intents", "#accesses", "#not at once"],
      nodes.map((n) => [h("span", {}, chip(n.id), ` node ${n.id}`), percent(n.owned), count(n.moves), count(n.copies), count(n.refreshes), count(n.intents), count(n.accesses), count(n.missed)])),
    h("details", { class: "small", open: this.nodes.querySelector("details")?.open ?? false }, h("summary", {}, "Its owners as a table"), table("Owners, the last first", ["epoch", "owner", "from", "for"],
      [...key.reigns ?? []].reverse().slice(0, 200).map((r) => [String(r.epoch), ownerText(r.owner), moment(r.from, this.app.run.to), r.to === null ? "until now" : seconds(r.to - r.from)]))));
  }

  draw() {
    if (!this.key) {
      return;
    }
    const { from, to } = this.shown();
    this.whole.hidden = !this.place.with.has("from") && !this.place.with.has("to");
    drawLanes(this.picture.ctx, this.key, { from, to }, this.picture.scale);
    const start = laneStart(this.picture.el.clientWidth);
    this.axis.style.marginLeft = `${100 * start}%`;
    showTimes(this.axis, from, to);
  }

  /**
   * The time at a share of the picture's width.
   * @param {number} x
   */
  time(x) {
    const start = laneStart(this.picture.el.clientWidth);
    const { from, to } = this.shown();
    return from + Math.max(0, (x - start) / (1 - start)) * (to - from);
  }

  /**
   * @param {number} x
   * @param {MouseEvent} e
   */
  pointed(x, e) {
    const { from, to } = this.shown();
    const t = this.time(x);
    this.tip.show(e, [h("b", {}, moment(t, to - from)), ...this.at(t)]);
  }

  /**
   * What held at a time, in lines.
   * @param {number} t
   */
  at(t) {
    const key = this.key;
    const within = (/** @type {number} */ from, /** @type {number | null} */ to) => t >= from && (to === null || t < to);
    const owner = key?.reigns?.find((r) => within(r.from, r.to))?.owner;
    const replicas = (key?.nodes ?? []).filter((n) => n.replica?.some((r) => within(...r))).map((n) => n.id);
    const wanted = (key?.nodes ?? []).filter((n) => n.intent?.some((r) => within(...r))).map((n) => n.id);
    return [`owner: ${ownerText(owner)}`, replicas.length ? `replicas at ${replicas.join(", ")}` : "no replica", wanted.length ? `wanted by ${wanted.join(", ")}` : "no intent"];
  }

  /** @param {KeyboardEvent} e */
  typed(e) {
    const { from, to } = this.shown();
    const range = to - from;
    /** @type {Record<string, [number, number]>} */
    const to2 = { "+": [from + range / 4, to - range / 4], "-": [from - range / 2, to + range / 2], ArrowLeft: [from - range / 5, to - range / 5], ArrowRight: [from + range / 5, to + range / 5] };
    const next = to2[e.key];
    if (next) {
      this.zoom(...next);
    } else if (e.key === "Escape") {
      this.showAll();
    } else {
      return false;
    }
    this.read.textContent = `From ${moment(this.shown().from, range)} to ${moment(this.shown().to, range)}. In the middle: ${this.at((this.shown().from + this.shown().to) / 2).join(", ")}.`;
    return true;
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  zoom(from, to) {
    const a = Math.max(0, from);
    const b = Math.min(this.app.run.to, to);
    if (b - a > 1e-4) {
      set({ from: +a.toFixed(9), to: +b.toFixed(9) }, true);
      this.moved(here());
    }
  }

  showAll() {
    set({ from: null, to: null }, true);
    this.moved(here());
  }

  /** @param {Place} place */
  moved(place) {
    this.place = place;
    this.newest.want();
    this.draw();
  }

  /** @param {import("../types.js").State} state */
  ticked(state) {
    if (!this.place.with.has("to") || !this.caughtUp) {
      this.newest.wantWithin(1900);
    }
    this.caughtUp = state.done; // what is asked for from now on has all
  }

  close() {
    this.newest.close();
    this.picture.close();
    this.tip.close();
    this.themed();
  }
}

function legend() {
  return h("p", { class: "notes" }, "Solid: the node owned the key. Striped: it had a replica, with a tick for each refresh, or each second where there were too many to write. Accesses are in the node's colour; the part at the foot had to ask or wait. Age: of the replica's value when it was refreshed. Nodes that had nothing to do with the key are left out.");
}
