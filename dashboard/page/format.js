// Writes figures for people.

const thin = "\u202f"; // between a figure and its unit

/**
 * A count: 999, 12.3 k, 4.5 M. A dash for what is not known.
 * @param {number | null | undefined} n
 */
export function count(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) {
    return "–";
  }
  return scaled(n, 1000, ["", "k", "M", "G", "T"]);
}

/** @param {number | null | undefined} n */
export function bytes(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) {
    return "–";
  }
  return scaled(n, 1000, ["B", "kB", "MB", "GB", "TB"]);
}

/**
 * @param {number} n
 * @param {number} step
 * @param {string[]} units
 */
function scaled(n, step, units) {
  let i = 0;
  let size = Math.abs(n);
  while (size >= step * 0.9995 && i < units.length - 1) {
    size /= step;
    i++;
  }
  if (size < 0.005) {
    n = size = 0; // nothing, and not a nothing with a sign
  }
  const digits = Number.isInteger(size) && i === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  const text = (n < 0 ? "−" : "") + size.toFixed(digits);
  return units[i] ? text + thin + units[i] : text;
}

/**
 * A share of one as percent.
 * @param {number | null | undefined} x
 */
export function percent(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) {
    return "–";
  }
  const p = 100 * x;
  if (Math.abs(p) < 0.05) {
    return (p > 0.0005 ? "< 0.1" : "0") + thin + "%";
  }
  const close = p >= 99 && p < 99.95; // … to all, and not all
  return (Math.abs(p) < 9.95 || close ? p.toFixed(1) : p.toFixed(0)) + thin + "%";
}

/**
 * A time or duration, in seconds.
 * @param {number | null | undefined} s
 */
export function seconds(s) {
  if (s === null || s === undefined || !Number.isFinite(s)) {
    return "–";
  }
  const a = Math.abs(s);
  if (a === 0) {
    return "0" + thin + "s";
  }
  if (a < 0.001) {
    return (s * 1e6).toFixed(0) + thin + "µs";
  }
  if (a < 1) {
    return (s * 1e3).toFixed(a < 0.1 ? 1 : 0) + thin + "ms";
  }
  if (a < 100) {
    return s.toFixed(a < 10 ? 2 : 1) + thin + "s";
  }
  return clock(s);
}

/**
 * A time of a run as m:ss, or h:mm:ss.
 * @param {number} s
 */
export function clock(s) {
  const whole = Math.max(0, Math.floor(s));
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const m = Math.floor(whole / 60);
  return m < 60 ? `${m}:${two(whole % 60)}` : `${Math.floor(m / 60)}:${two(m % 60)}:${two(whole % 60)}`;
}

/**
 * A time within a range, as exact as the range needs.
 * @param {number} t
 * @param {number} range
 */
export function moment(t, range) {
  if (range >= 600) {
    return clock(t);
  }
  return t.toFixed(range >= 60 ? 1 : range >= 1 ? 2 : 4) + thin + "s";
}

/**
 * Round times within a range, and how each is written.
 * @param {number} from
 * @param {number} to
 * @param {number} most how many there are at the most, about
 * @returns {[number, string][]}
 */
export function ticks(from, to, most) {
  const least = (to - from) / most;
  if (!(least > 0)) {
    return [[from, moment(from, 1)]];
  }
  const power = 10 ** Math.floor(Math.log10(least));
  const steps = least > 5 ? [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800] : [power, 2 * power, 5 * power, 10 * power];
  const step = steps.find((s) => s >= least * (1 - 1e-9)) ?? 86400 * Math.ceil(least / 86400);
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-6));
  /** @type {[number, string][]} */
  const list = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-12); i++) {
    list.push([i * step, to - from >= 600 ? clock(i * step) : (i * step).toFixed(digits) + thin + "s"]);
  }
  return list;
}

/**
 * The plain word of a figure that is not a share: a loss, a metric.
 * @param {number | null | undefined} x
 */
export function figure(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) {
    return "–";
  }
  const a = Math.abs(x);
  if (a !== 0 && (a < 0.001 || a >= 1e6)) {
    return x.toExponential(2);
  }
  return x.toFixed(a >= 100 ? 1 : a >= 10 ? 2 : 4);
}

/**
 * A word with its number: "1 key", "2 keys".
 * @param {number} n
 * @param {string} word
 * @param {string} [many]
 */
export function plural(n, word, many) {
  return `${count(n)} ${n === 1 ? word : many ?? word + "s"}`;
}

/**
 * A sentence begins with a capital letter.
 * @param {string} text
 */
export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
