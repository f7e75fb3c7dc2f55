/* The C library of Godwit: a process that loads it is a node of a run, and its threads are
 * workers. Functions may be called by any thread, but a worker serves one thread at a time.
 *
 * Results. A function returns 0 or more on success, or one of the negative codes below;
 * godwit_error() then has a text, of the last failure of the calling thread, which stays
 * until that thread fails again.
 *
 * Buffers. Every buffer comes with its length, in elements, which is checked. Rows are
 * numbers from 0 in their table. Values of rows follow each other, in the order of the rows.
 *
 * Waits. A function that may wait takes wait_ms: it returns after so many milliseconds at
 * the latest (0: at once, negative: when it is over). If the operation is under way
 * then, it returns GODWIT_AGAIN and writes the operation's number to *op. The caller waits on
 * with godwit_wait, or gives up with godwit_cancel, and must leave dst of a pull, and vals of
 * a push or set, untouched and in place until one of them returned something else than
 * GODWIT_AGAIN and GODWIT_BUSY: the operation goes on then.
 *
 * Fork. A child of a process that has loaded the library has no use of it: every function
 * returns GODWIT_FORKED there. It may start another process by exec.
 */
#ifndef GODWIT_H
#define GODWIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GODWIT_ABI 9 /* grows when a function changes */

enum {
	GODWIT_OK        = 0,
	GODWIT_AGAIN     = 1,   /* the operation is under way */
	GODWIT_ARGUMENT  = -1,  /* an argument cannot be */
	GODWIT_KEY       = -2,  /* a row does not exist */
	GODWIT_LENGTH    = -3,  /* a buffer has the wrong length */
	GODWIT_CLOSED    = -4,  /* cluster, worker or operation: closed, or there never was one */
	GODWIT_LOST      = -5,  /* another node, or the coordinator, was lost, has failed, or is waited for in vain */
	GODWIT_MEMORY    = -6,  /* the system has no memory left for rows */
	GODWIT_BUSY      = -7,  /* another thread uses the worker, or an operation that is under way */
	GODWIT_CANCELLED = -8,
	GODWIT_PANIC     = -9,  /* a defect of Godwit */
	GODWIT_FORKED    = -10, /* this process was forked after the library had been loaded */
	GODWIT_OTHER     = -11, /* the text says what */
	GODWIT_FULL      = -12  /* a bounded queue has no room: nothing was done, and the text says what to wait for */
};

/* The ABI of the library: GODWIT_ABI of the header that it was built with. */
int32_t godwit_abi(void);

/* The text of the last failure of this thread; never NULL. */
const char *godwit_error(void);

/* Begins to start a cluster, described in JSON:
 *   {"nodes": 1, "workers": 1, "seed": 0, "policy": "", "tables": [
 *     {"name": "users", "rows": 1000, "dim": 64, "rule": "adagrad(lr=0.1)",
 *      "init": {"kind": "uniform", "a": -0.1, "b": 0.1}}]}
 * nodes are all in this process; workers are of each node. rule is a name of package optim; of
 * a rule that is rated, dim counts the gradient alone. Kinds of initial values: zero,
 * uniform (a: lowest, b: highest), normal (a: mean, b: standard deviation).
 * A process that is one node of several has
 *   "member": {"run": "r", "rank": 0, "serve": true, "coordinator": "10.0.0.1:0", "token": "..."}
 * beside: rank is its id, and one process serves the coordinator to which all connect;
 * godwit_address has the port that it got. "advertise" is the host by which the others reach the node, if it is
 * not the one by which the node reaches the coordinator; "join_ms" how long it waits for them. "etcd": ["10.0.0.1:2379"] has
 * the nodes meet by an etcd, in place of a coordinator. "tls": {"cert": "node.pem", "key": "node.key", "ca": "ca.pem",
 * "name": ""} names files by which nodes prove who they are, and encrypt; name is what all certificates carry, if they do not
 * carry the addresses of their nodes. godwit_stats has the "address" by which the others reach the node, and
 * "closed", the ranks that have closed their cluster.
 * "from": "folder#12" has the rows begin as those of a checkpoint, which has the same tables; its seed is used.
 * Returns the cluster. */
int64_t godwit_open(const char *config, size_t length);

/* Writes the address of the coordinator that this process serves, as godwit_stats does. */
int32_t godwit_address(int64_t cluster, char *text, size_t size, size_t *length);

/* Waits for the cluster to start. Later it returns at once, with the error that has ended the run if one has. */
int32_t godwit_ready(int64_t cluster, int32_t wait_ms);

/* Ends the cluster. To be called again while it returns GODWIT_AGAIN. After that no operation uses its buffers any more. Numbers of its workers
 * and operations are not used again. The node of a process waits until the other processes of the run close, too, for as long as
 * they live. Barriers and the like, which a process that has begun to close does not come to any more, return GODWIT_LOST
 * at the others. godwit_abandon ends it at once, also while it waits: the others see a loss, with the reason. */
int32_t godwit_close(int64_t cluster, int32_t wait_ms);
int32_t godwit_abandon(int64_t cluster, const char *reason, size_t length, int32_t wait_ms);

/* Returns a worker by its number among those of all nodes. */
int64_t godwit_worker(int64_t cluster, int32_t index);

/* Writes what the cluster counts, as JSON, and its length to *length. If that is greater than
 * size, GODWIT_LENGTH is returned. */
int32_t godwit_stats(int64_t cluster, char *text, size_t size, size_t *length);

/* Tells of an epoch, an evaluation or a warning, for who watches the run: with "trace": FOLDER in the configuration, which the
 * nodes of the run have in common, they write there what they do. The event is JSON as package telemetry/record has it, such as
 *   {"epoch": {"epoch": 1, "of": 3, "loss": 0.5, "items": 1000, "seconds": 2}} */
int32_t godwit_note(int64_t cluster, const char *event, size_t length);

/* Reads rows of a table, given by its position in the configuration. flags: with GODWIT_ONCE a
 * row that occurs several times is read once; with GODWIT_LOOK no row is made, and one that nobody has accessed is read as
 * it is at first (unless the rule of the table makes what is read). What is pushed to it by an operation that was not waited for
 * may be missing then. */
#define GODWIT_ONCE 1
#define GODWIT_LOOK 2
int32_t godwit_pull(int64_t worker, int32_t table, const int64_t *rows, size_t count,
                    float *dst, size_t floats, int32_t flags, int32_t wait_ms, uint64_t *op);

/* Is a pull with GODWIT_ONCE, and godwit_unique of its rows: writes each of them once to unique, and the position there of each to
 * inverse, both of which have room for count, and to *distinct how many there are. These are there when it returns, also if it
 * returns GODWIT_AGAIN; rows, unique and inverse are then left in place and untouched as dst is. */
int32_t godwit_lookup(int64_t worker, int32_t table, const int64_t *rows, size_t count,
                      int64_t *unique, int64_t *inverse, size_t room, int64_t *distinct,
                      float *dst, size_t floats, int32_t wait_ms, uint64_t *op);

/* Adds the vectors of equal rows: that of the i-th place to vector where[i] of sums. These are in the order in which
 * they occur, as godwit_unique writes them, and where is its inverse. A vector
 * has dim floats; it begins stride floats after the one before, and is that of repeat places in a row: 1, unless one
 * vector is that of several. */
int32_t godwit_add(const int64_t *where, size_t places, const float *vals, size_t floats,
                   size_t repeat, size_t stride, int32_t dim, float *sums, size_t room);

/* Hands a vector, multiplied by scale, to the rule of each row. rate is the learning rate for a rule that is rated,
 * else 0. flags: GODWIT_SUM pushes the sum of the vectors of equal rows, once;
 * GODWIT_FINITE leaves vectors out that are not finite, and counts them. */
#define GODWIT_SUM    1
#define GODWIT_FINITE 2
int32_t godwit_push(int64_t worker, int32_t table, const int64_t *rows, size_t count,
                    const float *vals, size_t floats, float rate, float scale,
                    int32_t flags, int32_t wait_ms, uint64_t *op);

/* Overwrites rows and resets the state of their rule. */
int32_t godwit_set(int64_t worker, int32_t table, const int64_t *rows, size_t count,
                   const float *vals, size_t floats, int32_t wait_ms, uint64_t *op);

/* Reads or overwrites parts of rows where their main copies are: the values, what the tables' rules keep
 * beside them (the state: the accumulators of Adagrad, the two means of Adam), or both, a row's
 * value first. Unlike godwit_set, godwit_write leaves the other part as it is. floats is
 * count times those of the parts of a row; godwit_state returns how many the state of a row has. Reading
 * includes what this node has pushed. */
#define GODWIT_VALUES 1
#define GODWIT_STATE  2
int32_t godwit_read(int64_t worker, int32_t table, const int64_t *rows, size_t count,
                    float *dst, size_t floats, int32_t parts, int32_t wait_ms, uint64_t *op);
int32_t godwit_write(int64_t worker, int32_t table, const int64_t *rows, size_t count,
                     const float *vals, size_t floats, int32_t parts, int32_t wait_ms, uint64_t *op);
int32_t godwit_state(int64_t worker, int32_t table);

/* Asks that rows move to this node. */
int32_t godwit_localize(int64_t worker, int32_t table, const int64_t *rows, size_t count,
                        int32_t wait_ms, uint64_t *op);

/* Announces that the worker will access rows while its clock is in start ... end-1. */
int32_t godwit_intent(int64_t worker, int32_t table, const int64_t *rows, size_t count,
                      int64_t start, int64_t end);

/* Draws rows at random, by a sampler of the configuration:
 *   "samplers": [{"name": "negatives", "table": 0, "distribution": "uniform", "level": "iid", "distinct": false}]
 * Distributions are uniform, log_uniform and power (with "freq": [...] of rows, and "exponent"); levels those of
 * package sampling: iid, bounded, long-term, best-effort. godwit_prepare_sample announces that the worker will take n rows while its
 * clock is in start ... end-1, and returns the sample. godwit_pull_sample draws the next count of them: it writes their
 * numbers and values. godwit_finish_sample discards the rest. */
int64_t godwit_prepare_sample(int64_t worker, int32_t sampler, int32_t n, int64_t start, int64_t end);
int32_t godwit_pull_sample(int64_t worker, int32_t sampler, int64_t sample, int64_t *rows, size_t count,
                           float *dst, size_t floats, int32_t wait_ms, uint64_t *op);
int32_t godwit_finish_sample(int64_t worker, int64_t sample);

/* Raises the worker's clock by one, and returns it. godwit_clock only returns it. */
int64_t godwit_advance(int64_t worker);
int64_t godwit_clock(int64_t worker);

/* Bounds for how many steps the worker goes on while nothing comes from other nodes: a pull waits then, until all have
 * received what this node had sent so many steps before, and have made a sync round since. 0 ends it. */
int32_t godwit_bound_age(int64_t worker, int64_t steps);

/* Returns 1 if pulls and pushes that begin now take effect in their order, so that a pull sees a push that has not been
 * waited for, unless the row comes to this node meanwhile; else 0. It changes at godwit_advance. */
int64_t godwit_in_order(int64_t worker);

/* Waits until this node's updates have reached their owners, and its replicas show what the
 * owners had. */
int32_t godwit_wait_sync(int64_t worker, int32_t wait_ms, uint64_t *op);

/* Waits for all workers of all nodes, which all call it, and until what each of them has pushed is visible to all. Where some call godwit_barrier
 * instead, both calls fail at all workers, with GODWIT_OTHER. */
int32_t godwit_sync_all(int64_t worker, int32_t wait_ms, uint64_t *op);

/* Waits for all workers of all nodes, which all call it. */
int32_t godwit_barrier(int64_t worker, int32_t wait_ms, uint64_t *op);

/* Waits for an operation. Its number is forgotten when it is over. */
int32_t godwit_wait(int64_t worker, uint64_t op, int32_t wait_ms);

/* Gives an operation up, and returns when its buffers are free: GODWIT_OK if it had
 * succeeded, else GODWIT_CANCELLED. A push may have taken effect for some of its rows. */
int32_t godwit_cancel(int64_t worker, uint64_t op);

/* Writes a checkpoint of all rows and of some bytes of the caller's (state, which may be none):
 *   {"place": "folder", "number": 12, "keep": 0}
 * Each process of the run calls it with its first worker, while none of the process's workers is in use; the number and the
 * state are those of rank 0. With keep above 0 only so many checkpoints stay; "beside": ["folder/tables-1"] names folders in which
 * other clusters of the run have saved under the number before, and from which what is older than all of these is removed, too. Where the last one that the run wrote is the last
 * in the folder, only rows that changed since are written, unless there are many; what it builds on stays. */
int32_t godwit_save(int64_t worker, const char *config, size_t length, const char *state, size_t size,
                    int32_t wait_ms, uint64_t *op);

/* Returns the number of the next checkpoint in a folder. */
int64_t godwit_next(const char *place, size_t length);

/* Opens a checkpoint to read it, without a cluster. place may end with its number, as in "folder#12"; else it is
 * the last one. godwit_describe writes JSON as godwit_stats does:
 *   {"number": 12, "run": "local", "nodes": 1, "tables": [
 *     {"name": "users", "rows": 1000, "dim": 64, "state": 64, "rule": "ratedadagrad(...)"}]}
 * godwit_kept writes the bytes that were kept beside the rows likewise. godwit_rows reads parts of rows as godwit_read
 * does; it returns when it has. */
int64_t godwit_checkpoint(const char *place, size_t length);
int32_t godwit_describe(int64_t checkpoint, char *text, size_t size, size_t *length);
int32_t godwit_kept(int64_t checkpoint, char *bytes, size_t size, size_t *length);
int32_t godwit_rows(int64_t checkpoint, int32_t table, const int64_t *rows, size_t count,
                    float *dst, size_t floats, int32_t parts);
int32_t godwit_forget(int64_t checkpoint);

/* Writes each of some keys once, in the order in which they first occur, to unique, and to
 * inverse the position there of each. Both have room for count. Returns how many there are. */
int64_t godwit_unique(const int64_t *keys, size_t count, int64_t *unique, int64_t *inverse, size_t room);

#ifdef __cplusplus
}
#endif

#endif
