/* What the library does before it enters Go: it refuses children of a fork, in which Go's
 * threads do not exist, so that a call would hang or read rows that are out of date. And it
 * keeps a thread's last error text. */
#include "godwit.h"
#include "_cgo_export.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static volatile int forked;
static pthread_key_t last;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void) { forked = 1; }

static void make_key(void) { pthread_key_create(&last, free); }

__attribute__((constructor)) static void begin(void) {
	pthread_once(&once, make_key);
	pthread_atfork(NULL, NULL, in_child);
}

/* godwit_fail keeps a text as the calling thread's last error, and frees the one before. */
void godwit_fail(char *text) {
	free(pthread_getspecific(last));
	pthread_setspecific(last, text);
}

static int refuse(void) {
	godwit_fail(strdup("this process was forked after Godwit had been loaded, and cannot use it: Godwit belongs to the parent"));
	return GODWIT_FORKED;
}

const char *godwit_error(void) {
	const char *text = pthread_getspecific(last);
	return text == NULL ? "" : text;
}

int32_t godwit_abi(void) { return GODWIT_ABI; }

int64_t godwit_open(const char *config, size_t length) {
	return forked ? refuse() : go_open((char *)config, length);
}

int32_t godwit_ready(int64_t cluster, int32_t wait_ms) {
	return forked ? refuse() : go_ready(cluster, wait_ms);
}

int32_t godwit_close(int64_t cluster, int32_t wait_ms) {
	return forked ? refuse() : go_close(cluster, wait_ms);
}

int32_t godwit_abandon(int64_t cluster, const char *reason, size_t length, int32_t wait_ms) {
	return forked ? refuse() : go_abandon(cluster, (char *)reason, length, wait_ms);
}

int64_t godwit_worker(int64_t cluster, int32_t index) {
	return forked ? refuse() : go_worker(cluster, index);
}

int32_t godwit_stats(int64_t cluster, char *text, size_t size, size_t *length) {
	return forked ? refuse() : go_stats(cluster, text, size, length);
}

int32_t godwit_note(int64_t cluster, const char *event, size_t length) {
	return forked ? refuse() : go_note(cluster, (char *)event, length);
}

int32_t godwit_address(int64_t cluster, char *text, size_t size, size_t *length) {
	return forked ? refuse() : go_address(cluster, text, size, length);
}

int32_t godwit_pull(int64_t worker, int32_t table, const int64_t *rows, size_t count, float *dst, size_t floats, int32_t flags, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_pull(worker, table, (int64_t *)rows, count, dst, floats, flags, wait_ms, op);
}

int32_t godwit_lookup(int64_t worker, int32_t table, const int64_t *rows, size_t count, int64_t *unique, int64_t *inverse, size_t room, int64_t *distinct, float *dst, size_t floats, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_lookup(worker, table, (int64_t *)rows, count, unique, inverse, room, distinct, dst, floats, wait_ms, op);
}

int32_t godwit_add(const int64_t *where, size_t places, const float *vals, size_t floats, size_t repeat, size_t stride, int32_t dim, float *sums, size_t room) {
	return forked ? refuse() : go_add((int64_t *)where, places, (float *)vals, floats, repeat, stride, dim, sums, room);
}

int32_t godwit_push(int64_t worker, int32_t table, const int64_t *rows, size_t count, const float *vals, size_t floats, float rate, float scale, int32_t flags, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_push(worker, table, (int64_t *)rows, count, (float *)vals, floats, rate, scale, flags, wait_ms, op);
}

int32_t godwit_set(int64_t worker, int32_t table, const int64_t *rows, size_t count, const float *vals, size_t floats, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_set(worker, table, (int64_t *)rows, count, (float *)vals, floats, wait_ms, op);
}

int32_t godwit_read(int64_t worker, int32_t table, const int64_t *rows, size_t count, float *dst, size_t floats, int32_t parts, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_read(worker, table, (int64_t *)rows, count, dst, floats, parts, wait_ms, op);
}

int32_t godwit_write(int64_t worker, int32_t table, const int64_t *rows, size_t count, const float *vals, size_t floats, int32_t parts, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_write(worker, table, (int64_t *)rows, count, (float *)vals, floats, parts, wait_ms, op);
}

int32_t godwit_state(int64_t worker, int32_t table) {
	return forked ? refuse() : go_state(worker, table);
}

int32_t godwit_localize(int64_t worker, int32_t table, const int64_t *rows, size_t count, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_localize(worker, table, (int64_t *)rows, count, wait_ms, op);
}

int32_t godwit_intent(int64_t worker, int32_t table, const int64_t *rows, size_t count, int64_t start, int64_t end) {
	return forked ? refuse() : go_intent(worker, table, (int64_t *)rows, count, start, end);
}

int64_t godwit_advance(int64_t worker) {
	return forked ? refuse() : go_advance(worker);
}

int32_t godwit_bound_age(int64_t worker, int64_t steps) {
	return forked ? refuse() : go_bound_age(worker, steps);
}

int64_t godwit_clock(int64_t worker) {
	return forked ? refuse() : go_clock(worker);
}

int64_t godwit_in_order(int64_t worker) {
	return forked ? refuse() : go_in_order(worker);
}

int32_t godwit_wait_sync(int64_t worker, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_wait_sync(worker, wait_ms, op);
}

int32_t godwit_sync_all(int64_t worker, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_sync_all(worker, wait_ms, op);
}

int32_t godwit_barrier(int64_t worker, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_barrier(worker, wait_ms, op);
}

int32_t godwit_wait(int64_t worker, uint64_t op, int32_t wait_ms) {
	return forked ? refuse() : go_wait(worker, op, wait_ms);
}

int32_t godwit_cancel(int64_t worker, uint64_t op) {
	return forked ? refuse() : go_cancel(worker, op);
}

int64_t godwit_unique(const int64_t *keys, size_t count, int64_t *unique, int64_t *inverse, size_t room) {
	return forked ? refuse() : go_unique((int64_t *)keys, count, unique, inverse, room);
}

int32_t godwit_save(int64_t worker, const char *config, size_t length, const char *state, size_t size, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_save(worker, (char *)config, length, (char *)state, size, wait_ms, op);
}

int64_t godwit_next(const char *place, size_t length) {
	return forked ? refuse() : go_next((char *)place, length);
}

int64_t godwit_checkpoint(const char *place, size_t length) {
	return forked ? refuse() : go_checkpoint((char *)place, length);
}

int32_t godwit_describe(int64_t checkpoint, char *text, size_t size, size_t *length) {
	return forked ? refuse() : go_describe(checkpoint, text, size, length);
}

int32_t godwit_kept(int64_t checkpoint, char *bytes, size_t size, size_t *length) {
	return forked ? refuse() : go_kept(checkpoint, bytes, size, length);
}

int32_t godwit_rows(int64_t checkpoint, int32_t table, const int64_t *rows, size_t count, float *dst, size_t floats, int32_t parts) {
	return forked ? refuse() : go_rows(checkpoint, table, (int64_t *)rows, count, dst, floats, parts);
}

int32_t godwit_forget(int64_t checkpoint) {
	return forked ? refuse() : go_forget(checkpoint);
}

int64_t godwit_prepare_sample(int64_t worker, int32_t sampler, int32_t n, int64_t start, int64_t end) {
	return forked ? refuse() : go_prepare_sample(worker, sampler, n, start, end);
}

int32_t godwit_pull_sample(int64_t worker, int32_t sampler, int64_t sample, int64_t *rows, size_t count, float *dst, size_t floats, int32_t wait_ms, uint64_t *op) {
	return forked ? refuse() : go_pull_sample(worker, sampler, sample, rows, count, dst, floats, wait_ms, op);
}

int32_t godwit_finish_sample(int64_t worker, int64_t sample) {
	return forked ? refuse() : go_finish_sample(worker, sample);
}
