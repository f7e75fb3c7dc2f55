// The tour: runs of the same task by several policies one after the other, and what to see in the
// picture of each.

import { binary, json, Newest } from "../api.js";
import { card, fill, h } from "../dom.js";
import { paintHeat } from "../paint.js";
import { link } from "../place.js";
import { Picture } from "../picture.js";
import { dark, onTheme } from "../theme.js";
import { readHeat } from "../tiles.js";
import { chip } from "./overview.js";

/** @typedef {import("../types.js").Tour["steps"][number]} Step */

const tall = 150; // of a picture, in pixels of the page

/**
 * @param {HTMLElement} main
 * @param {import("../main.js").App} app
 * @returns {import("../main.js").View}
 */
export function open(main, app) {
  const list = h("div", { class: "stacked" });
  main.append(h("p", { class: "tale soft" }, "The same task by several policies. Each picture has a line for each key or for several, and time from left to right. The colour is the owner; dark dots are replicas. ",
    app.run.nodes.map((n) => [h("span", { class: "nowrap" }, chip(n.id), ` node ${n.id}`), " "]).flat()), list);
  /** @type {Shown[]} */
  let shown = [];
  let stop = new AbortController();
  const clear = () => {
    stop.abort();
    shown.forEach((s) => s.close());
  };
  /** @param {Step[]} steps */
  const show = (steps) => {
    app.fine();
    if (steps.length && steps.map((s) => s.run).join("\n") === shown.map((s) => s.step.run).join("\n")) {
      return;
    }
    clear();
    stop = new AbortController();
    shown = steps.map((s, i) => new Shown(s, i));
    fill(list, shown.length ? shown.map((s) => s.el) : h("p", { class: "empty" }, "A tour begins when the folder has two runs: godwit demo --dashboard makes one, and so does training a task by --policies all with --dashboard."));
    loadAll(shown, stop.signal).catch(app.failed);
  };
  const newest = new Newest((s) => json("api/tour", {}, s), (t) => show(/** @type {import("../types.js").Tour} */ (t).steps ?? []), app.failed);
  newest.want();
  return {
    ticked: () => newest.wantWithin(3000),
    close: () => {
      newest.close();
      clear();
    },
  };
}

/**
 * Gets the pictures one after the other: the server has few runs open at a time.
 * @param {Shown[]} shown
 * @param {AbortSignal} signal
 */
async function loadAll(shown, signal) {
  for (const s of shown) {
    await s.load(signal);
  }
}

/** A step of the tour that is shown. */
class Shown {
  /**
   * @param {Step} step
   * @param {number} i
   */
  constructor(step, i) {
    this.step = step;
    /** @type {import("../tiles.js").Heat | null} */
    this.heat = null;
    const to = (/** @type {string} */ view) => link(view, undefined, { run: step.run });
    this.picture = new Picture(`Allocation over time by the policy ${step.policy}. Enter opens it.`, {
      resized: () => this.draw(),
      pointed: () => undefined,
      left: () => undefined,
      clicked: () => { location.hash = to("allocation"); },
      key: (e) => {
        if (e.key === "Enter") {
          location.hash = to("allocation");
        }
        return e.key === "Enter";
      },
    });
    this.picture.setHeight(tall);
    this.el = card(`${i + 1}. ${step.title}`, step.policy, [h("a", { href: to("overview") }, "Overview"), h("a", { href: to("allocation") }, "Allocation"), h("a", { href: to("affinity") }, "Affinity"), h("a", { href: to("cluster") }, "Cluster")],
      h("p", { class: "tale" }, step.text), this.picture.el);
    this.themed = onTheme(() => this.draw());
  }

  /**
   * Gets the picture, and again until the server has read all of the run, or waited long enough.
   * @param {AbortSignal} signal
   */
  async load(signal) {
    this.picture.resize();
    for (let tries = 0; tries < 60 && !signal.aborted; tries++) {
      const { index } = /** @type {import("../types.js").Run} */ (await json("api/run", { run: this.step.run }, signal)); // before the picture: what is read meanwhile is not in it
      const { canvas } = this.picture;
      this.heat = readHeat(await binary("api/heat", { run: this.step.run, cols: Math.min(2000, canvas.width), rows: Math.min(2000, canvas.height) }, signal));
      this.draw();
      if (this.heat.keys > 0 && index.done) {
        return;
      }
      await new Promise((done) => setTimeout(done, 500));
    }
  }

  draw() {
    if (this.heat) {
      paintHeat(this.picture.ctx, this.heat, { only: -1, dark: dark(), heat: false });
    }
  }

  close() {
    this.picture.close();
    this.themed();
  }
}
