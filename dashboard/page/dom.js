// Makes elements. Texts of users become text nodes, and never markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Makes an element. Properties that are functions listen to events ("click"), others become
 * attributes; true is an attribute without a value, and false, null or undefined none.
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
    } else if (value === true) {
      el.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
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
 * Replaces the children of an element.
 * @param {Element} el
 * @param {...(Child | Child[])} children
 */
export function fill(el, ...children) {
  el.replaceChildren();
  add(el, children.flat());
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
