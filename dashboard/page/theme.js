// Light or dark: what the system says, until the reader chooses.

import { fill, h } from "./dom.js";

const system = matchMedia("(prefers-color-scheme: dark)");

/** @typedef {"system" | "light" | "dark"} Choice */

/** @type {Set<() => void>} */
const listeners = new Set();

/** @returns {Choice} */
function chosen() {
  try {
    const c = localStorage.getItem("godwit-theme");
    return c === "light" || c === "dark" ? c : "system";
  } catch {
    return "system"; // a browser that keeps nothing
  }
}

/** Whether the page is dark now. */
export function dark() {
  const c = chosen();
  return c === "dark" || c === "system" && system.matches;
}

/** Whether the reader asked for less motion. */
export function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/**
 * A colour of style.css, by its name.
 * @param {string} name such as "--ink"
 */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/**
 * Calls back when the colours change.
 * @param {() => void} changed
 * @returns {() => void} ends it
 */
export function onTheme(changed) {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

/**
 * Makes a button the switch between system, light and dark.
 * @param {HTMLButtonElement} button
 */
export function install(button) {
  const show = () => {
    const c = chosen();
    document.documentElement.dataset["theme"] = dark() ? "dark" : "light";
    fill(button, h("span", { class: "unseen" }, "Colours: "), { system: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[c]);
    listeners.forEach((l) => l());
  };
  button.addEventListener("click", () => {
    /** @type {Choice[]} */
    const turns = system.matches ? ["system", "light", "dark"] : ["system", "dark", "light"];
    const next = turns[(turns.indexOf(chosen()) + 1) % 3] ?? "system";
    try {
      localStorage.setItem("godwit-theme", next);
    } catch {
      // It is not kept, then.
    }
    show();
  });
  system.addEventListener("change", show);
  show();
}
