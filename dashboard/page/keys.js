// Names of keys: what people call them.

import { json } from "./api.js";

/**
 * A key as table:row, or as its number if no table has it.
 * @param {import("./types.js").Run} run
 * @param {number} key
 */
export function rowOf(run, key) {
  const t = run.tables.find((t) => key >= t.first && key < t.first + t.rows);
  return t ? `${t.name}:${key - t.first}` : String(key);
}

/** Names finds names that users gave keys, a key once. */
export class Names {
  /**
   * @param {import("./types.js").Run} run
   * @param {() => void} found
   */
  constructor(run, found) {
    this.run = run;
    this.found = found;
    /** @type {Map<number, string>} */
    this.known = new Map();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /**
   * The name of a key, as far as it is known; found is called when it is known better.
   * @param {number} key
   */
  of(key) {
    const row = rowOf(this.run, key);
    const name = this.known.get(key);
    if (name !== undefined || !this.run.named) {
      return name ? `${name} (${row})` : row;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(key, row), 120);
    return row;
  }

  /**
   * @param {number} key
   * @param {string} row
   */
  async ask(key, row) {
    try {
      const keys = /** @type {import("./types.js").Keys} */ (await json("api/keys", { q: row, limit: 20 }));
      this.known.set(key, keys.keys?.find((k) => k.key === key)?.name ?? "");
      this.found();
    } catch {
      this.known.set(key, ""); // the number is name enough
    }
  }

  close() {
    clearTimeout(this.timer);
  }
}
