// Two runs side by side: what another policy, or another number of nodes, did with the same task.

import { json, Newest } from "../api.js";
import { Chart } from "../chart.js";
import { card, choice, fill, h, table } from "../dom.js";
import { count, figure, percent, seconds } from "../format.js";
import { curves } from "../palette.js";
import { here, set } from "../place.js";

/** @typedef {import("../types.js").Compared} Compared */

/** @type {[string, string][]} */
const kinds = [["accesses", "Accesses a second"], ["missed", "Accesses that had to ask or wait, a second"], ["moves", "Moves a second"], ["refreshes", "Refreshes a second"]];

/**
 * @param {HTMLElement} main
 * @param {import("../main.js").App} app
 * @returns {import("../main.js").View}
 */
export function open(main, app) {
  const controls = h("div", { class: "tools-row" });
  const body = h("div", {});
  /** @type {Map<string, Chart>} */
  const charts = new Map();
  let beside = ""; // the runs that are shown
  main.append(h("section", { class: "card", "aria-label": "Which runs" }, controls), body);
  const whole = h("div", {});
  const curveCards = h("div", { class: "halves" });
  fill(body, whole, curveCards);
  const close = () => {
    charts.forEach((c) => c.close());
    charts.clear();
  };

  /** @param {Compared[]} runs */
  const show = (runs) => {
    app.fine();
    const curve = (/** @type {string} */ title, /** @type {(n: number | null | undefined) => string} */ value, /** @type {(r: Compared) => [number, number | null][]} */ of, zero = true) => {
      const points = runs.map(of);
      const x = [...new Set(points.flat().map(([t]) => t))].sort((a, b) => a - b);
      const at = points.map((p) => new Map(p));
      let chart = charts.get(title);
      if (!chart) {
        chart = new Chart({ title, value, zero });
        charts.set(title, chart);
        curveCards.append(card(title, "by the time of each run", [], chart.el));
      }
      const shown = chart;
      /** @type {HTMLElement} */ (shown.el.closest(".card")).hidden = x.length === 0;
      requestAnimationFrame(() => shown.show(x, runs.map((r, i) => ({ label: `${r.name}: ${r.policy}`, stroke: curves[i] ?? "", dash: i ? [7, 4] : [] })), at.map((m) => x.map((t) => between(m, t)))));
    };
    const these = runs.map((r) => r.name).join("\n");
    if (these !== beside) {
      beside = these;
      close();
      fill(curveCards);
    }
    fill(whole, figures(runs));
    curve("Loss", figure, (r) => (r.loss ?? []).map((l) => [l.t, l.loss]), false);
    kinds.forEach(([name, title]) => curve(title, count, (r) => (r.t ?? []).map((t, i) => [t, r.series[name]?.[i] ?? null])));
    body.className = "stacked";
    if (runs.some((r) => !r.done)) { // one is still read
      newest.wantWithin(600);
    }
  };
  const newest = new Newest((s) => json("api/compare", { other: here().with.get("other") }, s), (c) => show(c.runs ?? []), app.failed);

  const choose = async () => {
    try {
      const all = /** @type {import("../types.js").Runs} */ (await json("api/runs"));
      const others = all.runs.filter((r) => r.name !== app.run.name);
      if (!others.length) {
        fill(controls, h("p", { class: "empty" }, "There is one run only. Runs that are traced into the same folder can be compared: ", h("code", {}, "godwit dashboard DIR"), "."));
        return;
      }
      const other = here().with.get("other") ?? others[0]?.name ?? "";
      set({ other }, true);
      fill(controls, h("span", {}, "Run ", h("b", {}, app.run.name), ` (${app.run.policy})`),
        choice("beside", others.map((r) => /** @type {[string, string]} */ ([r.name, `${r.name} (${r.policy})`])), other, (v) => { set({ other: v }, true); newest.want(); }));
      newest.want();
    } catch (err) {
      app.failed(err);
    }
  };
  void choose();
  return { moved: () => void choose(), ticked: () => newest.wantWithin(3000), close: () => { newest.close(); close(); } };
}

/**
 * The value at a time; where the other run has a point only, the straight line between.
 * @param {Map<number, number | null>} values
 * @param {number} t
 */
function between(values, t) {
  const exact = values.get(t);
  if (exact !== undefined) {
    return exact;
  }
  let before = -Infinity;
  let after = Infinity;
  for (const at of values.keys()) {
    if (at < t && at > before) {
      before = at;
    }
    if (at > t && at < after) {
      after = at;
    }
  }
  const a = values.get(before);
  const b = values.get(after);
  return typeof a === "number" && typeof b === "number" ? a + (b - a) * (t - before) / (after - before) : null;
}

/** @param {Compared[]} runs */
function figures(runs) {
  /** @type {[string, (r: Compared) => string][]} */
  const rows = [
    ["policy", (r) => r.policy], ["nodes", (r) => String(r.nodes)], ["time", (r) => seconds(r.seconds)], ["loss at the end", (r) => figure(r.loss?.[r.loss.length - 1]?.loss)],
    ["accesses of traced keys", (r) => count(r.accesses)], ["… that had to ask or wait", (r) => percent(r.accesses ? r.missed / r.accesses : null)], ["moves", (r) => count(r.moves)], ["replicas set up", (r) => count(r.copies)],
    ["refreshes", (r) => count(r.refreshes)], ...metricRows(runs),
  ];
  return card("Side by side", null, [], h("div", { class: "narrow" }, table("The runs as a whole", ["", ...runs.map((r) => "#" + r.name)], rows.map(([name, of]) => [name, ...runs.map(of)]))));
}

/**
 * @param {Compared[]} runs
 * @returns {[string, (r: Compared) => string][]}
 */
function metricRows(runs) {
  const names = [...new Set(runs.flatMap((r) => (r.metrics ?? []).map((m) => `${m.split} ${m.name}`)))].slice(0, 12);
  return names.map((name) => [name, (r) => figure(r.metrics?.findLast((m) => `${m.split} ${m.name}` === name)?.value)]);
}
