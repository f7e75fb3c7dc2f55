// The overview: what is wrong, where the time of a step goes, what the adaptation wastes, and the loss.

import { json, Newest } from "../api.js";
import { Chart, few } from "../chart.js";
import { card, fill, h, table } from "../dom.js";
import { count, figure, percent, sentence } from "../format.js";
import { css, curves, ink } from "../palette.js";
import { link } from "../place.js";

/** @typedef {import("../types.js").Overview} Overview */
/** @typedef {import("../types.js").Finding} Finding */

/** What a step's time goes into, in the order of the bars: name, tone and pattern. */
/** @type {[string, string, string, string][]} */
const parts = [
  ["compute", "computing", "tone-compute", ""],
  ["server", "server work", "tone-server", ""],
  ["gc", "garbage collection", "tone-gc", "dots"],
  ["answers", "waiting for answers", "tone-wait-0", "hatch"],
  ["window", "waiting for its window", "tone-wait-1", "hatch"],
  ["bound", "waiting for staleness bounds", "tone-wait-2", "hatch"],
  ["room", "waiting for room to send", "tone-wait-3", "hatch"],
  ["barrier", "waiting at barriers", "tone-wait-4", "hatch"],
  ["sync", "waiting for a sync", "tone-wait-5", "hatch"],
  ["others", "waiting for other workers", "tone-wait-6", "hatch"],
];
const waits = parts.map(([name]) => name).slice(3);

/**
 * @param {HTMLElement} main
 * @param {import("../main.js").App} app
 * @returns {import("../main.js").View}
 */
export function open(main, app) {
  const verdict = h("section", { class: "card verdict none", "aria-label": "Verdict" });
  const steps = h("div", {});
  const waste = h("div", {});
  const figures = h("dl", { class: "figures" });
  const loss = new Chart({ title: "Loss by epoch", value: figure, time: (e) => Number.isInteger(e) ? String(e) : "", unit: "epoch", height: 176 });
  const quality = h("p", { class: "small soft" });
  const noLoss = h("p", { class: "empty", hidden: true });
  main.append(verdict, figures,
    h("div", { class: "pair" },
      card("Where a step goes", "the time of each node's workers, with the processor time that server work and garbage collection take beside it", [], steps),
      card("Loss", "by epoch", [], noLoss, loss.el, quality)),
    card("Waste", "what the adaptation did that nobody used", [h("a", { href: link("cluster"), class: "small" }, "Curves")], waste));

  let tries = 5; // to ask a replay for samples that are still read
  /** @param {Overview} o */
  const show = (o) => {
    app.fine();
    showVerdict(verdict, o, app.run);
    showFigures(figures, o, app.run);
    showSteps(steps, o, app.run);
    showWaste(waste, o, app.run);
    noLoss.textContent = sentence(noEpoch(app.run)) + ".";
    noLoss.hidden = (o.loss?.length ?? 0) > 0;
    loss.el.hidden = !noLoss.hidden;
    loss.show((o.loss ?? []).map((l) => l.epoch), [{ label: "loss", stroke: curves[0] ?? "", points: few(o.loss) }], [(o.loss ?? []).map((l) => l.loss)]);
    quality.textContent = lastMetrics(o);
    if (!o.nodes?.some((n) => n.parts) && tries-- > 0) {
      newest.wantWithin(600);
    }
  };
  const newest = new Newest((signal) => json("api/overview", {}, signal), show, app.failed);
  newest.want();
  return {
    ticked: () => newest.wantWithin(900),
    close: () => {
      newest.close();
      loss.close();
    },
  };
}

/**
 * What is said of a run of which no loss is known.
 * @param {import("../types.js").Run} run
 */
function noEpoch(run) {
  return run.live ? "no epoch is over yet" : "no epoch came to its end";
}

/**
 * @param {HTMLElement} el
 * @param {Overview} o
 * @param {import("../types.js").Run} run
 */
function showVerdict(el, o, run) {
  const { tone, mark, word } = levelOf(o);
  el.className = `card verdict ${tone}`;
  const rest = (o.findings ?? []).filter((f, i) => i > 0 || f.text !== o.verdict?.text);
  const advice = o.verdict?.advice ?? o.findings?.[0]?.advice;
  const wasOpen = el.querySelector("details")?.open ?? false;
  fill(el, h("span", { class: "mark", "aria-hidden": "true" }, mark),
    h("div", {}, h("h2", {}, h("span", { class: "unseen" }, word + ": "), sentence(o.verdict?.text ?? (run.live ? "no verdict yet: nodes have told nothing of themselves" : "no verdict: nodes told nothing of themselves"))),
      advice ? h("p", { class: "advice" }, sentence(advice)) : null),
    h("span", { class: "badge", hidden: !o.findings?.length }, plainShare(o.findings?.[0])),
    rest.length ? h("details", { open: wasOpen }, h("summary", {}, rest.length === 1 ? "One more finding" : `${rest.length} more findings`),
      h("ul", { class: "findings" }, rest.map((f) => h("li", {}, sentence(f.text), f.advice ? h("p", { class: "soft" }, sentence(f.advice)) : null)))) : null);
}

/** @param {Finding | undefined} f */
function plainShare(f) {
  return f?.share ? `${percent(f.share)} of the time` : f?.ill ?? "";
}

/** @param {Overview} o */
function levelOf(o) {
  switch (o.verdict?.level) {
    case "ok": return { tone: "good", mark: "✓", word: "Healthy" };
    case "bad": return { tone: "bad", mark: "!", word: "Problem" };
    case undefined: return { tone: "none", mark: "…", word: "Not known" };
    default: return { tone: "warn", mark: "!", word: "Note" };
  }
}

/**
 * @param {HTMLElement} el
 * @param {Overview} o
 * @param {import("../types.js").Run} run
 */
function showFigures(el, o, run) {
  const nodes = o.nodes ?? [];
  const known = nodes.filter((n) => n.throughput !== null && n.throughput !== undefined);
  const last = o.loss?.[o.loss.length - 1];
  fill(el,
    one("Throughput", known.length ? count(known.reduce((s, n) => s + (n.throughput ?? 0), 0)) + " /s" : "–", run.unit ? `${run.unit}, all nodes` : "all nodes"),
    one("Computing", percent(ofWorkers(nodes, ["compute"])), "of the workers' time"),
    one("Waiting", percent(ofWorkers(nodes, waits)), "of the workers' time"),
    one("Slowest node", slow(o) ? `node ${o.slowest?.node}` : o.slowest ? "none" : "–", slow(o) ? `${percent(o.slowest?.speed)} of the others' speed` : o.slowest ? "nodes compute as fast as each other" : run.nodes.length > 1 ? "speeds are not known" : "the run has one node"),
    one("Refreshes unread", percent(o.waste?.unread), "of those that came for replicas"),
    one("Loss", figure(last?.loss), last ? `epoch ${last.epoch}` : noEpoch(run)));
}

/**
 * The share of the time of all nodes' workers that goes into some parts of it. What server work and the collection of garbage take is
 * processor time beside that.
 * @param {NonNullable<Overview["nodes"]>} nodes
 * @param {string[]} names
 */
export function ofWorkers(nodes, names) {
  const sum = (/** @type {string[]} */ of) => nodes.reduce((s, n) => s + of.reduce((t, name) => t + (n.parts?.[name] ?? 0), 0), 0);
  const all = sum(["compute", ...waits]);
  return all > 0 ? sum(names) / all : null;
}

/**
 * Whether a node is slower than what differs from node to node anyway.
 * @param {Overview} o
 */
function slow(o) {
  return o.slowest ? o.slowest.speed < 0.9 : false;
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} about
 */
function one(name, value, about) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value), h("dd", {}, about));
}

/**
 * @param {HTMLElement} el
 * @param {Overview} o
 * @param {import("../types.js").Run} run
 */
function showSteps(el, o, run) {
  const nodes = o.nodes ?? [];
  const used = parts.filter(([name]) => nodes.some((n) => (n.parts?.[name] ?? 0) > 0));
  if (!used.length) {
    fill(el, h("p", { class: "empty" }, run.live ? "Nodes have told nothing of their time yet." : "Nodes told nothing of their time."));
    return;
  }
  const wasOpen = el.querySelector("details")?.open ?? false;
  fill(el,
    h("div", { class: "steps" }, nodes.map((n) => stepOf(n, o, run))),
    h("ul", { class: "legend" }, used.map(([, text, tone, pattern]) => h("li", {}, h("span", { class: `swatch ${tone} ${pattern}` }), text))),
    h("details", { class: "small", open: wasOpen }, h("summary", {}, "As a table"),
      table("Shares of these times, by node", ["node", ...used.map(([, text]) => "#" + text)],
        nodes.map((n) => [`node ${n.id}`, ...used.map(([name]) => percent(share(n, name)))]))));
}

/**
 * @param {NonNullable<Overview["nodes"]>[number]} n
 * @param {string} name
 */
function share(n, name) {
  const all = Object.values(n.parts ?? {}).reduce((s, x) => s + (x ?? 0), 0);
  return all > 0 ? (n.parts?.[name] ?? 0) / all : null;
}

/**
 * @param {NonNullable<Overview["nodes"]>[number]} n
 * @param {Overview} o
 * @param {import("../types.js").Run} run
 */
function stepOf(n, o, run) {
  const said = [];
  const bar = h("div", { class: "stack", role: "img" });
  for (const [name, text, tone, pattern] of parts) {
    const part = share(n, name) ?? 0;
    if (part <= 0) {
      continue;
    }
    said.push(`${text} ${percent(part)}`);
    const seg = h("span", { class: `${tone} ${pattern}`, title: `${text}: ${percent(part)}` }, part >= (innerWidth < 700 ? 0.15 : 0.09) ? h("i", {}, percent(part)) : null);
    seg.style.flex = `${part} 0 0`;
    bar.append(seg);
  }
  bar.setAttribute("aria-label", said.length ? `node ${n.id}: ${said.join(", ")}` : `node ${n.id}: not known`);
  const host = run.nodes.find((r) => r.id === n.id)?.host;
  return h("div", {},
    h("span", { class: "who", title: host ?? null }, chip(n.id), `node ${n.id}`, slow(o) && o.slowest?.node === n.id ? h("span", { class: "slowest" }, "slowest") : null),
    bar,
    h("span", { class: "rate" }, n.throughput === null || n.throughput === undefined ? "–" : count(n.throughput) + " /s"));
}

/**
 * The mark of a node: its number on its colour.
 * @param {number} node
 */
export function chip(node) {
  const el = h("span", { class: node >= 8 ? "chip hatch" : "chip", "aria-hidden": "true" }, node);
  el.style.backgroundColor = css(node);
  el.style.color = ink(node);
  return el;
}

/**
 * @param {HTMLElement} el
 * @param {Overview} o
 * @param {import("../types.js").Run} run
 */
function showWaste(el, o, run) {
  const w = o.waste;
  if (!w) {
    fill(el, h("p", { class: "empty" }, run.live ? "Not measured yet." : "Not measured."));
    return;
  }
  /** @type {[string, number | null, string][]} */
  const shares = [
    ["Refreshes never read", w.unread, "newer rows that came for a replica and were not accessed before the next one"],
    ["Replicas dropped unread", w.dropped, "copies that were set up and given up without one access"],
    ["Intents unused", w.unused, "announced keys that were not accessed while they were announced"],
  ];
  fill(el, h("div", { class: "shares wide" }, shares.map(([name, part, about]) => meter(name, part, about))),
    w.touches === null || w.touches === undefined ? null :
      h("p", { class: "small soft" }, `Keys that moved were accessed ${figure(w.touches)} times for each move, on average.`));
}

/**
 * @param {string} name
 * @param {number | null} part
 * @param {string} about
 */
function meter(name, part, about) {
  const fillEl = h("span", { class: (part ?? 0) > 0.5 ? "tone-wait-0 hatch" : "" });
  fillEl.style.width = `${100 * Math.min(1, part ?? 0)}%`;
  return h("div", { class: "row" }, h("span", {}, name), h("b", {}, percent(part)), h("div", { class: "meter", "aria-hidden": "true" }, fillEl), h("span", { class: "about" }, about));
}

/** @param {Overview} o */
function lastMetrics(o) {
  /** @type {Map<string, import("../types.js").Metric>} */
  const last = new Map();
  (o.metrics ?? []).forEach((m) => last.set(`${m.split} ${m.name}`, m));
  const epoch = Math.max(...[...last.values()].map((m) => m.epoch));
  const of = [...last].filter(([, m]) => m.epoch === epoch).slice(0, 4).map(([name, m]) => `${name} ${figure(m.value)}`).join(" · ");
  return of && `${epoch > 0 ? `After epoch ${epoch}` : "Before training"}: ${of}`;
}
