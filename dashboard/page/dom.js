// Makes elements. Texts of users become text nodes, and never markup.

import { ticks } from "./format.js";

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Makes an element. Properties that are functions listen to events ("click"), others become
 * attributes; true is an attribute without a value, and false, null or undefined none. Those of aria have the words "true" and "false".
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, unknown>} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (typeof value === "function") {
      el.addEventListener(name, /** @type {EventListener} */ (value));
    } else if (value === true && !name.startsWith("aria-")) {
      el.setAttribute(name, "");
    } else if ((value !== false || name.startsWith("aria-")) && value !== null && value !== undefined) {
      el.setAttribute(name, String(value));
    }
  }
  add(el, children.flat());
  return el;
}

/**
 * Appends children to an element.
 * @param {Element} el
 * @param {Child[]} children
 */
export function add(el, children) {
  for (const c of children) {
    if (c instanceof Node) {
      el.append(c);
    } else if (c !== null && c !== undefined && c !== false) {
      el.append(String(c));
    }
  }
}

/**
 * Replaces the children of an element. If one of them has the focus, it passes to what takes its place.
 * @param {Element} el
 * @param {...(Child | Child[])} children
 */
export function fill(el, ...children) {
  const focused = document.activeElement;
  const place = focused && focused !== el && el.contains(focused) ? placeOf(el, focused) : null;
  el.replaceChildren();
  add(el, children.flat());
  if (focused && place) {
    passFocus(el, focused, place);
  }
}

/**
 * Where an element stands within another one: the number of the child on each level.
 * @param {Element} el
 * @param {Element} inner
 */
function placeOf(el, inner) {
  const place = [];
  for (let at = inner; at !== el && at.parentElement; at = at.parentElement) {
    place.unshift([...at.parentElement.children].indexOf(at));
  }
  return place;
}

/**
 * Gives the focus to what took the place of an element: itself, a link to the same, or what is of its kind at its place.
 * @param {Element} el
 * @param {Element} was
 * @param {number[]} place
 */
function passFocus(el, was, place) {
  const to = was.getAttribute("href");
  const same = el.contains(was) ? was : to === null ? undefined : [...el.querySelectorAll("a")].find((a) => a.getAttribute("href") === to);
  const now = same ?? place.reduce((/** @type {Element | undefined} */ at, i) => at?.children[i], el);
  if (now instanceof HTMLElement && now.tagName === was.tagName) {
    now.focus({ preventScroll: true });
  }
}

/**
 * Makes a card: a titled part of a view.
 * @param {string} title
 * @param {string | null} about a sentence beside the title
 * @param {Child[]} tools at the right
 * @param {...Child} body
 */
export function card(title, about, tools, ...body) {
  const head = h("header", {}, h("h2", {}, title), about ? h("p", {}, about) : null,
    tools.length ? h("div", { class: "tools" }, tools) : null);
  return h("section", { class: "card" }, head, body);
}

/**
 * Makes a select.
 * @param {string} label
 * @param {[string, string][]} options value and text
 * @param {string} value
 * @param {(value: string) => void} chosen
 */
export function choice(label, options, value, chosen) {
  const select = h("select", { change: () => chosen(select.value) }, options.map(([v, text]) => h("option", { value: v, selected: v === value }, text)));
  return h("label", { class: "field" }, label, select);
}

/**
 * Makes a table. Columns whose name begins with "#" hold numbers.
 * @param {string} caption
 * @param {string[]} columns
 * @param {Child[][]} rows the first cell of each is its header
 */
export function table(caption, columns, rows) {
  const numeric = columns.map((c) => c.startsWith("#"));
  const cls = (/** @type {number} */ i) => numeric[i] ? "num" : null;
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
    h("table", {}, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, columns.map((c, i) => h("th", { scope: "col", class: cls(i) }, c.replace(/^#/, ""))))),
      h("tbody", {}, rows.map((r) => h("tr", {}, r.map((c, i) => i === 0 ? h("th", { scope: "row" }, c) : h("td", { class: cls(i) }, c)))))));
}

/**
 * Writes round times below a picture that is as wide as the axis, where they lie.
 * @param {HTMLElement} axis
 * @param {number} from
 * @param {number} to
 */
export function showTimes(axis, from, to) {
  fill(axis, ticks(from, to, innerWidth < 700 ? 3 : 7).map(([t, text]) => {
    const at = to > from ? (t - from) / (to - from) : 0;
    const el = h("span", { class: at < 0.04 ? "first" : at > 0.96 ? "last" : null }, text);
    el.style.left = `${100 * at}%`;
    return el;
  }));
}
