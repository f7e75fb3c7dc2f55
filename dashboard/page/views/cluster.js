// The cluster: how much it does, what it sends and waits for, how evenly, and what it learns.

import { json, Newest } from "../api.js";
import { Chart, few } from "../chart.js";
import { card, choice, fill, h } from "../dom.js";
import { bytes, count, figure, percent } from "../format.js";
import { css, curves } from "../palette.js";
import { here, number, set } from "../place.js";

/** @typedef {import("../types.js").Cluster} Cluster */
/** @typedef {import("../types.js").Metric} Metric */
/** @typedef {(number | null)[]} Values */

/** @type {Record<string, string>} what a worker waits for */
const causes = { answers: "answers", room: "room to send", bound: "staleness bounds", window: "its window", barrier: "barriers", sync: "a sync", others: "other workers" };

/**
 * @param {HTMLElement} main
 * @param {import("../main.js").App} app
 * @param {import("../place.js").Place} place
 * @returns {import("../main.js").View}
 */
export function open(main, app, place) {
  const perSecond = (/** @type {number | null | undefined} */ n) => n === null || n === undefined ? "–" : count(n) + "/s";
  const bytesPerSecond = (/** @type {number | null | undefined} */ n) => n === null || n === undefined ? "–" : bytes(n) + "/s";
  const charts = {
    throughput: new Chart({ title: "Throughput by node", value: perSecond, zero: true }),
    skew: new Chart({ title: "Speed of the slowest node, of the median", value: percent, zero: true }),
    waits: new Chart({ title: "Waits by cause, of the workers' time", value: percent, zero: true }),
    bytes: new Chart({ title: "Bytes sent a second, by kind", value: bytesPerSecond, zero: true }),
    missed: new Chart({ title: "Accesses that had to ask or wait, by node", value: percent, zero: true, gaps: true }),
    events: new Chart({ title: "Moves, replicas and refreshes a second", value: perSecond, zero: true }),
    rounds: new Chart({ title: "Sync rounds a second, by node", value: perSecond, zero: true }),
    memory: new Chart({ title: "Garbage collection, of the processor time, by node", value: percent, zero: true, gaps: true }),
    loss: new Chart({ title: "Loss by time", value: figure }),
    metrics: new Chart({ title: "Metrics by time", value: figure }),
  };
  /** @type {Record<keyof typeof charts, [string, string]>} */
  const titles = {
    throughput: ["Throughput", app.run.unit ? `${app.run.unit} a second, by node` : "a second, by node"], skew: ["Skew", "the slowest node, of the median"],
    waits: ["Waits", "of the workers' time, all nodes; each counted when it ends"], bytes: ["Bytes sent", "by kind, all nodes"], missed: ["Accesses not served at once", "of traced keys, by node"],
    events: ["Moves, replicas, refreshes", "of traced keys, all nodes"], rounds: ["Sync rounds", "by node"], memory: ["Garbage collection", "of the processor time, by node"],
    loss: ["Loss", "learning curve"], metrics: ["Metrics", "learning curve"],
  };
  const cards = Object.entries(charts).map(([name, chart]) => {
    const [title, about] = titles[/** @type {keyof typeof charts} */ (name)];
    const el = card(title, about, [], chart.el);
    el.hidden = true;
    return { name, chart, el };
  });
  const metrics = h("div", { class: "tools" });
  cards.find((c) => c.name === "metrics")?.el.querySelector("header")?.append(metrics);
  let offered = ""; // names of metrics, and the one that is shown
  const nothing = h("p", { class: "empty", hidden: true });
  const range = choice("Show", [["", "the whole run"], ["60", "the last minute"], ["600", "the last 10 minutes"]], place.with.get("last") ?? "", (v) => {
    set({ last: v || null }, true);
    newest.want();
  });
  main.append(h("div", { class: "tools-row" }, range), nothing, h("div", { class: "halves" }, cards.map((c) => c.el)));

  /**
   * @param {keyof typeof charts} name
   * @param {number[]} x
   * @param {import("../chart.js").Line[]} lines
   * @param {Values[]} values
   */
  const put = (name, x, lines, values) => {
    const found = cards.find((c) => c.name === name);
    const some = values.some((v) => v.some((n) => n !== null));
    if (found) {
      found.el.hidden = !some;
    }
    if (some) {
      charts[name].show(x, lines, values);
    }
  };
  /** @param {Cluster} c */
  const show = (c) => {
    app.fine();
    const t = c.t ?? [];
    nothing.textContent = app.run.live ? "No figures yet." : "There are no figures.";
    nothing.hidden = t.length > 0;
    for (const name of /** @type {const} */ (["throughput", "rounds"])) {
      const nodes = (c.nodes ?? []).filter((n) => n.series[name]);
      put(name, t, nodes.map((n) => lineOf(n.id)), nodes.map((n) => n.series[name] ?? []));
    }
    const measured = (c.nodes ?? []).filter((n) => n.series["gc"] && n.series["processor"]);
    put("memory", t, measured.map((n) => lineOf(n.id)), measured.map((n) => part(n.series["gc"] ?? [], n.series["processor"] ?? [])));
    const told = (c.nodes ?? []).filter((n) => n.series["accesses"]);
    put("missed", t, told.map((n) => lineOf(n.id)), told.map((n) => part(n.series["missed"] ?? [], n.series["accesses"] ?? [])));
    put("skew", t, [{ label: "slowest / median", stroke: curves[1] ?? "" }], [c.skew ?? []]);
    family(c, "wait.", t, (lines, values) => put("waits", t, lines.map((l) => ({ ...l, label: causes[l.label] ?? l.label })), values.map((v) => v.map((n) => n === null ? null : n / workersOf(app, c)))));
    family(c, "bytes.", t, (lines, values) => put("bytes", t, lines, values));
    const events = ["moves", "copies", "refreshes", "drops"];
    put("events", t, events.map((e, i) => ({ label: e === "copies" ? "replicas set up" : e === "drops" ? "replicas dropped" : e, stroke: curves[i] ?? "" })), events.map((e) => total(c, e, t.length)));
    const names = metricNames(c.metrics ?? []);
    const metric = names.includes(here().with.get("metric") ?? "") ? here().with.get("metric") ?? "" : longest(c.metrics ?? [], names);
    const offer = [...names, "", metric].join("\n");
    if (offer !== offered && names.length > 1) {
      offered = offer;
      fill(metrics, choice("Metric", names.map((n) => /** @type {[string, string]} */ ([n, n])), metric, (v) => {
        set({ metric: v }, true);
        newest.want();
      }));
    }
    showLearning(c, metric, put);
  };
  const newest = new Newest((s) => json("api/cluster", { cols: Math.min(600, Math.max(60, Math.floor(main.clientWidth / 4))), ...rangeOf(app) }, s), show, app.failed);
  newest.want();
  return {
    moved: () => newest.want(),
    ticked: () => newest.wantWithin(1400),
    close: () => {
      newest.close();
      cards.forEach((c) => c.chart.close());
    },
  };
}

/** @param {import("../main.js").App} app */
function rangeOf(app) {
  const last = number(here().with, "last");
  return last ? { from: Math.max(0, app.run.to - last), to: app.run.to } : {};
}

/** @param {number} node */
function lineOf(node) {
  return { label: `node ${node}`, stroke: css(node), dash: node >= 16 ? [2, 3] : node >= 8 ? [6, 4] : [] };
}

/**
 * @param {import("../main.js").App} app
 * @param {Cluster} c
 */
function workersOf(app, c) {
  const known = app.run.nodes.reduce((s, n) => s + (n.workers ?? 0), 0);
  return known || (c.nodes?.length ?? 1);
}

/**
 * One series as a share of another one.
 * @param {Values} of
 * @param {Values} all
 */
function part(of, all) {
  return all.map((n, i) => n ? (of[i] ?? 0) / n : null);
}

/**
 * A series summed over nodes.
 * @param {Cluster} c
 * @param {string} name
 * @param {number} n
 * @returns {Values}
 */
function total(c, name, n) {
  const have = (c.nodes ?? []).map((node) => node.series[name]).filter((s) => s);
  return Array.from({ length: n }, (_, i) => have.some((s) => s?.[i] !== null && s?.[i] !== undefined) ? have.reduce((sum, s) => sum + (s?.[i] ?? 0), 0) : null);
}

/**
 * The series whose names begin alike, summed over nodes, the largest seven and the rest.
 * @param {Cluster} c
 * @param {string} prefix
 * @param {number[]} t
 * @param {(lines: import("../chart.js").Line[], values: Values[]) => void} put
 */
function family(c, prefix, t, put) {
  const names = new Set((c.nodes ?? []).flatMap((n) => Object.keys(n.series)).filter((n) => n.startsWith(prefix) && n !== prefix + "all"));
  const sums = [...names].map((name) => ({ name: name.slice(prefix.length), values: total(c, name, t.length) }))
    .map((s) => ({ ...s, all: s.values.reduce((/** @type {number} */ a, b) => a + (b ?? 0), 0) })).filter((s) => s.all > 0).sort((a, b) => b.all - a.all);
  const shown = sums.slice(0, 7);
  const rest = sums.slice(7);
  if (rest.length) {
    shown.push({ name: "others", all: 0, values: t.map((_, i) => rest.reduce((s, r) => s + (r.values[i] ?? 0), 0)) });
  }
  put(shown.map((s, i) => ({ label: s.name, stroke: curves[i % curves.length] ?? "" })), shown.map((s) => s.values));
}

/**
 * @param {Cluster} c
 * @param {string} metric whose curve is shown
 * @param {(name: "loss" | "metrics", x: number[], lines: import("../chart.js").Line[], values: Values[]) => void} put
 */
function showLearning(c, metric, put) {
  const loss = c.loss ?? [];
  put("loss", loss.map((l) => l.t), [{ label: "loss", stroke: curves[0] ?? "", points: few(loss) }], [loss.map((l) => l.loss)]);
  const one = (c.metrics ?? []).filter((m) => nameOf(m) === metric);
  put("metrics", one.map((m) => m.t), [{ label: metric, stroke: curves[1] ?? "", points: few(one) }], [one.map((m) => m.value)]);
}

/** @param {Metric} m */
function nameOf(m) {
  return `${m.split} ${m.name}`;
}

/**
 * The name of the metric that was told most often: one of the begin or the end alone is no curve.
 * @param {Metric[]} metrics
 * @param {string[]} names
 */
function longest(metrics, names) {
  const times = (/** @type {string} */ name) => metrics.filter((m) => nameOf(m) === name).length;
  return names.reduce((best, name) => times(name) > times(best) ? name : best, names[0] ?? "");
}

/** @param {Metric[]} metrics */
function metricNames(metrics) {
  return [...new Set(metrics.map(nameOf))];
}
