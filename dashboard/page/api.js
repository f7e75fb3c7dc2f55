// Asks the server.

import { here } from "./place.js";

/** @typedef {Record<string, string | number | null | undefined>} Params */

/** What the server said that it cannot answer. */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {number} status
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} path
 * @param {Params} params
 * @param {AbortSignal} [signal]
 */
async function ask(path, params, signal) {
  const query = new URLSearchParams();
  const run = here().with.get("run");
  for (const [name, value] of Object.entries({ run, ...params })) {
    if (value !== null && value !== undefined && value !== "") {
      query.set(name, String(value));
    }
  }
  const text = query.toString();
  const answer = await fetch(path + (text ? "?" + text : ""), signal ? { signal } : {});
  if (!answer.ok) {
    const body = await answer.json().catch(() => null);
    throw new Refusal(typeof body?.error === "string" ? body.error : `the server answered ${answer.status}`, answer.status);
  }
  return answer;
}

/**
 * Asks for JSON.
 * @param {string} path
 * @param {Params} [params]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function json(path, params, signal) {
  return (await ask(path, params ?? {}, signal)).json();
}

/**
 * Asks for bytes.
 * @param {string} path
 * @param {Params} [params]
 * @param {AbortSignal} [signal]
 */
export async function binary(path, params, signal) {
  return (await ask(path, params ?? {}, signal)).arrayBuffer();
}

/**
 * Newest has at most one request on its way. Of requests that come meanwhile only the last is made:
 * whoever drags a slider wants the place where it stops, and a slow server gets no queue.
 * @template T
 */
export class Newest {
  /**
   * @param {(signal: AbortSignal) => Promise<T>} get
   * @param {(value: T) => void} got
   * @param {(err: unknown) => void} failed
   */
  constructor(get, got, failed) {
    this.get = get;
    this.got = got;
    this.failed = failed;
    this.busy = false;
    this.again = false;
    this.stop = new AbortController();
    this.asked = -Infinity;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** Asks, or asks again when the answer on its way is here. */
  want() {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    this.again = false;
    this.asked = performance.now();
    this.get(this.stop.signal).then(
      (value) => this.done(() => this.got(value)),
      (err) => this.done(() => this.failed(err)));
  }

  /** @param {() => void} tell */
  done(tell) {
    if (this.stop.signal.aborted) {
      return;
    }
    this.busy = false;
    tell();
    if (this.again) {
      this.want();
    }
  }

  /**
   * Asks so many milliseconds after it was asked last, or now if that is over.
   * @param {number} ms
   */
  wantWithin(ms) {
    if (this.timer === undefined && !this.stop.signal.aborted) {
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.want();
      }, Math.max(0, this.asked + ms - performance.now()));
    }
  }

  /** Gives up what is on its way. */
  close() {
    clearTimeout(this.timer);
    this.stop.abort();
  }
}
