// The address: which view is shown, and of what. All that a picture depends on stands in the part behind
// "#", so that a link shows the same picture: #/allocation?t=12.5&sort=heat.

/** @typedef {{view: string, subject: string, with: URLSearchParams}} Place */

/** @returns {Place} */
export function here() {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...subject] = path.split("/");
  return { view: view || "overview", subject: plain(subject.join("/")), with: new URLSearchParams(query) };
}

/** @param {string} text */
function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The link to a view. The run stays the same.
 * @param {string} view
 * @param {string} [subject]
 * @param {Record<string, string | number | null>} [params]
 */
export function link(view, subject, params) {
  const query = new URLSearchParams();
  const run = here().with.get("run");
  if (run) {
    query.set("run", run);
  }
  for (const [name, value] of Object.entries(params ?? {})) {
    if (value === null) {
      query.delete(name);
    } else {
      query.set(name, String(value));
    }
  }
  const text = query.toString();
  return `#/${view}${subject ? "/" + encodeURIComponent(subject) : ""}${text ? "?" + text : ""}`;
}

/**
 * Changes parameters of the address; null removes one. Going back skips what was only replaced.
 * @param {Record<string, string | number | null>} params
 * @param {boolean} [replace] no new entry in the history, and no redrawing
 */
export function set(params, replace) {
  const at = here();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === "") {
      at.with.delete(name);
    } else {
      at.with.set(name, String(value));
    }
  }
  const text = at.with.toString();
  const hash = `#/${at.view}${at.subject ? "/" + encodeURIComponent(at.subject) : ""}${text ? "?" + text : ""}`;
  if (hash === location.hash) {
    return;
  }
  if (replace) {
    history.replaceState(null, "", hash);
  } else {
    location.hash = hash;
  }
}

/**
 * A number of the address, or null.
 * @param {URLSearchParams} params
 * @param {string} name
 */
export function number(params, name) {
  const text = params.get(name);
  const n = text === null || text === "" ? NaN : Number(text);
  return Number.isFinite(n) ? n : null;
}
