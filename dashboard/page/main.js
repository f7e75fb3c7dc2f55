// The frame of the page: which run, whether it lives, and which view is shown.

import { json, Refusal } from "./api.js";
import { choice, fill, h } from "./dom.js";
import { clock, count, plural } from "./format.js";
import { here, link, set } from "./place.js";
import { install } from "./theme.js";
import * as overview from "./views/overview.js";
import * as allocation from "./views/allocation.js";
import * as affinity from "./views/affinity.js";
import * as key from "./views/key.js";
import * as cluster from "./views/cluster.js";
import * as compare from "./views/compare.js";
import * as tour from "./views/tour.js";

/**
 * A view that is open.
 * @typedef {object} View
 * @property {(place: import("./place.js").Place) => void} [moved] the address has other parameters
 * @property {(state: import("./types.js").State) => void} [ticked] the run went on
 * @property {() => void} [close]
 */

/**
 * What views know of the page.
 * @typedef {object} App
 * @property {import("./types.js").Run} run
 * @property {(err: unknown) => void} failed shows what went wrong
 * @property {() => void} fine takes that away
 */

/** @type {Record<string, {title: string, open: (main: HTMLElement, app: App, place: import("./place.js").Place) => View}>} */
const views = {
  overview: { title: "Overview", open: overview.open },
  allocation: { title: "Allocation", open: allocation.open },
  affinity: { title: "Affinity", open: affinity.open },
  key: { title: "One key", open: key.open },
  cluster: { title: "Cluster", open: cluster.open },
  compare: { title: "Compare", open: compare.open },
  tour: { title: "Tour", open: tour.open },
};

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const tabs = /** @type {HTMLElement} */ (document.getElementById("tabs"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
const runLine = /** @type {HTMLElement} */ (document.getElementById("run"));
const trouble = /** @type {HTMLElement} */ (document.getElementById("trouble"));

/** @type {View | null} */
let view = null;
let shown = ""; // view, subject and run that are shown
/** @type {import("./types.js").Run | null} */
let run = null;
/** @type {App | null} */
let app = null;
/** @type {import("./types.js").RunLine[]} */
let runs = [];
const keyCount = h("span");
let described = 0; // when it was asked what the run is
let toured = false;
/** @type {EventSource | null} */
let stream = null;
let streamOf = "";
let ended = false;
let unknown = false; // nothing is known of the run, and it is not one that has not begun

/** @param {unknown} err */
function failed(err) {
  if (err instanceof DOMException && err.name === "AbortError") {
    return;
  }
  const silent = ended ? "The server has ended: only what the page has already is shown." : "The server does not answer. The page shows what it had last.";
  const text = err instanceof TypeError ? silent : err instanceof Error ? err.message : String(err);
  trouble.hidden = false;
  if (trouble.textContent !== text) {
    trouble.textContent = text;
  }
}

function fine() {
  trouble.hidden = true;
}

function showTabs() {
  const now = here().view;
  fill(tabs, Object.entries(views).filter(([name]) => name !== "tour" || toured).map(([name, v]) =>
    h("li", {}, h("a", { href: link(name), "aria-current": name === now ? "page" : null }, v.title))));
}

function showRun() {
  if (!run) {
    runLine.dataset["words"] = "";
    fill(runLine, unknown && runs.length ? pick("") : h("span", {}, unknown ? "no run" : "waiting for a run"));
    return;
  }
  const words = JSON.stringify([runs.map((r) => [r.name, r.policy]), run.name, run.task, run.policy, run.nodes.length]);
  showKeys(run.keys);
  if (runLine.dataset["words"] === words) {
    return; // a list of runs may be open
  }
  runLine.dataset["words"] = words;
  fill(runLine, runs.length > 1 ? pick(run.name) : h("span", {}, "Run ", h("b", {}, run.name)), run.task ? h("span", {}, "Task ", h("b", {}, run.task)) : null, h("span", {}, "Policy ", h("b", {}, run.policy)),
    h("span", {}, h("b", {}, run.nodes.length), run.nodes.length === 1 ? " node" : " nodes"), keyCount);
}

/**
 * Makes the choice of a run.
 * @param {string} name of the one that is shown; empty: none
 */
function pick(name) {
  /** @type {[string, string][]} */
  const all = runs.map((r) => [r.name, `${r.name} · ${r.policy}`]);
  return choice("Run", name ? all : [["", "choose one"], ...all], name, (chosen) => set({ run: chosen || null, t: null, from: null, to: null }));
}

/** @param {number} keys */
function showKeys(keys) {
  fill(keyCount, h("b", {}, count(keys)), keys === 1 ? " traced key" : " traced keys");
}

/** @param {import("./types.js").State | null} state */
function showStatus(state) {
  const live = !ended && (state?.live ?? run?.live ?? false);
  const badge = h("span", { class: live ? "badge live" : ended ? "badge lost" : "badge" }, live ? "Live" : ended ? "Server ended" : "Replay");
  const to = state?.to ?? run?.to ?? 0;
  const reading = state && !state.done && state.progress < 1 ? `reading ${Math.floor(100 * state.progress)} %` : "";
  const known = state ?? run;
  const lost = known?.lost ? plural(known.lost, "event") + " lost" : "";
  const thinned = (known?.thinned ?? 0) > 1 ? `details of 1 key in ${known?.thinned}` : "";
  const text = [reading, lost, thinned, clock(to)].filter(Boolean).join(" · ");
  if (status.dataset["text"] !== badge.textContent + text) {
    status.dataset["text"] = badge.textContent + text;
    fill(status, badge, h("span", { "aria-live": "off" }, text));
  }
}

/** Opens the view that the address names, or tells the open one that the address changed. */
function show() {
  const place = here();
  const kind = views[place.view];
  showTabs();
  if (!kind) {
    set({}, true);
    location.replace(link("overview"));
    return;
  }
  document.title = `${kind.title}${place.subject ? " " + place.subject : ""} – Godwit`;
  const name = [place.view, place.subject, run?.name].join("\n");
  if (name === shown && view) {
    view.moved?.(place);
    return;
  }
  view?.close?.();
  view = null;
  if (!unknown) { // else what is wrong still is
    fine();
  }
  if (!app) {
    fill(main, h("p", { class: "empty" }, unknown ? "There is nothing to show." : "No node has begun to write yet. This page goes on by itself when a run begins."));
    return;
  }
  shown = name;
  fill(main, h("h1", { class: "unseen" }, kind.title));
  view = kind.open(main, app, place);
}

/** Reads which run it is, and follows it. */
async function load() {
  const wanted = here().with.get("run") ?? "";
  /** @type {unknown} */
  let refusal = null;
  try {
    runs = (await json("api/runs")).runs ?? [];
    run = runs.length ? await json("api/run") : null;
    fine();
  } catch (err) {
    refusal = err instanceof Refusal && err.status === 503 ? null : err;
    run = err instanceof TypeError && streamOf === wanted ? run : null; // a server that does not answer says nothing new of the run
  }
  unknown = refusal !== null && run === null;
  app = run ? Object.assign(app ?? { failed, fine }, { run }) : null;
  showRun();
  showStatus(null);
  show();
  if (refusal !== null) {
    failed(refusal);
  }
  follow(wanted);
  if (run && !introduced(run)) {
    const of = run;
    setTimeout(() => void describe(of), 1000);
  }
}

/**
 * Follows a run while the page is seen: a browser has few connections to a server, and each page that follows takes one.
 * @param {string} name
 */
function follow(name) {
  if (stream && streamOf === name) {
    return;
  }
  stream?.close();
  stream = null;
  streamOf = name;
  if (document.hidden) {
    return;
  }
  const path = "events" + (name ? "?run=" + encodeURIComponent(name) : "");
  const source = new EventSource(path);
  stream = source;
  source.addEventListener("state", (e) => ticked(JSON.parse(e.data)));
  source.addEventListener("error", () => {
    if (ended || stream !== source) {
      return;
    }
    showStatus(null);
    if (source.readyState === EventSource.CLOSED) { // the browser does not try again
      void refused(path).then(() => setTimeout(() => {
        if (stream === source && !ended) {
          stream = null;
          follow(name);
        }
      }, 5000));
    } else {
      failed(new TypeError());
    }
  });
  source.addEventListener("open", fine);
  source.addEventListener("bye", () => {
    ended = true;
    source.close();
    showStatus(null);
  });
}

/**
 * Asks why the server lets the page not follow: of a stream, a browser does not tell.
 * @param {string} path
 */
async function refused(path) {
  const stop = new AbortController();
  try {
    const answer = await fetch(path, { signal: stop.signal });
    if (!answer.ok) {
      failed(new Error((await answer.json()).error));
    }
  } catch (err) {
    failed(err);
  } finally {
    stop.abort();
  }
}

/**
 * Whether a run, and each of its nodes, has said what it is.
 * @param {import("./types.js").Run} of
 */
function introduced(of) {
  return Boolean(of.task) && of.nodes.every((n) => n.workers);
}

let lines = 0; // runs that the server told of
let unread = false; // the server told last that it cannot read

/**
 * Shows what the server cannot read, until it can.
 * @param {import("./types.js").State} state
 */
function told(state) {
  if (state.error) {
    failed(new Error(state.error));
  } else if (unread) {
    fine();
  }
  unread = Boolean(state.error);
}

/** @param {import("./types.js").State} state */
function ticked(state) {
  if (!run || state.runs !== lines) {
    lines = state.runs;
    void load().then(() => told(state));
    void tours();
    return;
  }
  told(state);
  if (state.error || state.waiting) {
    return; // it says nothing of the run
  }
  Object.assign(run, { to: state.to, keys: state.keys, events: state.events, lost: state.lost, thinned: state.thinned, live: state.live });
  showKeys(state.keys);
  showStatus(state);
  view?.ticked?.(state);
  if (!introduced(run) && performance.now() - described > 2000) {
    void describe(run);
  }
}

/**
 * Asks again what a run is whose first words had not been read yet.
 * @param {import("./types.js").Run} of
 */
async function describe(of) {
  described = performance.now();
  try {
    const now = await json("api/run");
    if (now.name === of.name) {
      Object.assign(of, now);
      showRun();
    }
  } catch {
    // The next state asks again.
  }
}

async function tours() {
  try {
    toured = (await json("api/tour")).steps?.length > 0;
    showTabs();
  } catch {
    toured = false; // an older server
  }
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stream?.close();
    stream = null;
  } else if (!ended) {
    follow(streamOf);
  }
});
install(/** @type {HTMLButtonElement} */ (document.getElementById("theme")));
addEventListener("hashchange", () => {
  if ((here().with.get("run") ?? "") !== streamOf) {
    shown = "";
    void load();
  } else {
    show();
  }
});
showTabs();
void load();
void tours();
