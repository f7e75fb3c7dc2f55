// What the server answers. Times are seconds since the run's start; what is not known is null or missing.

/** @typedef {{name: string, policy: string, nodes: number, start: number, live: boolean}} RunLine */
/** @typedef {{runs: RunLine[], current: string}} Runs */

/**
 * @typedef {object} Run
 * @property {string} name
 * @property {string} policy
 * @property {string} [task]
 * @property {string} [command]
 * @property {string} [data]
 * @property {string} [unit] of throughput
 * @property {{id: number, host?: string, pid?: number, workers?: number}[]} nodes
 * @property {{name: string, first: number, rows: number}[]} tables
 * @property {string} traced which keys
 * @property {number} keys that have events
 * @property {number} events
 * @property {number} lost events that the disk did not take
 * @property {number} thinned intents, requests and decisions are those of one key of so many, at the least; 0 or 1: of all
 * @property {number} start in seconds since 1970
 * @property {number} from
 * @property {number} to
 * @property {boolean} live
 * @property {boolean} named whether keys have names
 * @property {{done: boolean, progress: number, window: number}} index
 */

/** @typedef {{run: string, to: number, keys: number, events: number, lost: number, thinned: number, live: boolean, progress: number, done: boolean, runs: number, error?: string, waiting?: string}} State */

/** @typedef {{t: number, epoch: number, loss: number}} Loss */
/** @typedef {{t: number, epoch: number, split: string, name: string, value: number}} Metric */
/** @typedef {{ill: string, text: string, node?: number | null, share?: number | null, advice?: string | null}} Finding */

/**
 * @typedef {object} Overview
 * @property {number} from
 * @property {number} to
 * @property {{text: string, level: string, advice?: string | null} | null} [verdict]
 * @property {Finding[] | null} [findings]
 * @property {{id: number, seconds: number | null, parts: Record<string, number> | null, throughput: number | null, speed: number | null}[] | null} nodes
 * @property {{node: number, speed: number} | null} [slowest]
 * @property {{unread: number | null, dropped: number | null, unused: number | null, touches: number | null} | null} [waste]
 * @property {Loss[] | null} [loss]
 * @property {Metric[] | null} [metrics]
 */

/** @typedef {{key: number, table: string, row: number, name: string | null, accesses: number, missed: number, moves: number, copies: number, refreshes: number, intents: number, owner: number | null, replicas: number[] | null}} KeyLine */
/** @typedef {{total: number, keys: KeyLine[] | null}} Keys */

/** @typedef {[number, number | null]} Span */

/**
 * @typedef {object} KeyNode
 * @property {number} id
 * @property {number} owned
 * @property {number} moves
 * @property {number} copies
 * @property {number} refreshes
 * @property {number} intents
 * @property {number} accesses
 * @property {number} missed
 * @property {Span[] | null} intent
 * @property {Span[] | null} replica
 * @property {number[] | null} refreshed
 * @property {[number, number, number, number][] | null} accessed from, to, how many, missed
 * @property {number[] | null} asked
 * @property {[number, number][] | null} age
 */

/**
 * @typedef {object} Key
 * @property {number} key
 * @property {string} table
 * @property {number} row
 * @property {string | null} name
 * @property {number | null} owner
 * @property {string} why
 * @property {string[] | null} text
 * @property {{epoch: number, owner: number, from: number, to: number | null}[] | null} reigns
 * @property {{t: number, node: number, text: string}[] | null} decisions
 * @property {number} events
 * @property {boolean} shortened
 * @property {KeyNode[] | null} nodes
 */

/**
 * @typedef {object} Affinity
 * @property {number} keys
 * @property {{id: number, owned: number, replicated: number, moves: number, copies: number, accesses: number, missed: number}[] | null} nodes
 * @property {{key: number, name: string | null, accesses: number, moves: number, copies: number, replicated: number, technique: string}[] | null} techniques
 */

/** @typedef {Record<string, (number | null)[] | null>} Series */

/**
 * @typedef {object} Cluster
 * @property {number[] | null} t
 * @property {{id: number, series: Series}[] | null} nodes
 * @property {(number | null)[] | null} [skew]
 * @property {Loss[] | null} [loss]
 * @property {Metric[] | null} [metrics]
 */

/** @typedef {{name: string, policy: string, nodes: number, seconds: number, done: boolean, accesses: number, missed: number, moves: number, copies: number, refreshes: number, t: number[] | null, series: Series, loss?: Loss[] | null, metrics?: Metric[] | null}} Compared */
/** @typedef {{runs: Compared[]}} Compare */
/** @typedef {{steps: {run: string, policy: string, title: string, text: string}[]}} Tour */

export {};
