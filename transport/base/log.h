/*
 * log: four levels to standard error, one line each.
 *
 * main picks the level; libraries below the deciding layer return reasons
 * instead of logging.  Thread-safe.  Strings that come from a peer are passed
 * through log_escape() first; what is not printable is escaped in any case.
 */
#ifndef TRANSPORT_BASE_LOG_H
#define TRANSPORT_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

enum log_level {
	LOG_LEVEL_ERROR, /* the operator must act */
	LOG_LEVEL_WARN,  /* something was refused, lost or slow */
	LOG_LEVEL_INFO,  /* sessions and peers come and go */
	LOG_LEVEL_DEBUG, /* everything else */
};

/* program is borrowed for the life of the process. */
void log_init(const char *program, enum log_level level);

/*
 * From now on a line that standard error has no room for is dropped; the number
 * of dropped lines is logged when there is room again: a daemon does not block
 * because the program that reads its log does.
 */
void log_never_wait(void);

/*
 * From now on lines are held back until log_release() or exit() writes them, so
 * that something else can be printed first.  When there are more than
 * LOG_HELD_MAX bytes of them, they are written early, and no more are held.
 */
#define LOG_HELD_MAX 16384
void log_hold(void);
void log_release(void);

/* 0 for "error", "warn", "info" or "debug"; -1 for any other word. */
int log_level_parse(const char *word, enum log_level *out) MUST_CHECK;

void log_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_warn(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_info(const char *fmt, ...) PRINTF_LIKE(1, 2);
void log_debug(const char *fmt, ...) PRINTF_LIKE(1, 2);

/*
 * A token bucket for lines that a peer can cause at will.  Zero-initialised is
 * ready to use.  log_allowed() says whether to log now (at most `burst` lines
 * at once, one more a second); the number of lines swallowed since the last
 * allowed one is stored in *swallowed.  now_ms is any monotonic clock.
 */
struct log_limit {
	uint64_t last_ms;
	uint32_t tokens_used;
	uint32_t swallowed;
};
int log_allowed(struct log_limit *l, uint64_t now_ms, uint32_t *swallowed);
/* Logs a line if the bucket allows it, and how many were dropped before it. */
void log_limited(struct log_limit *l, uint64_t now_ms, enum log_level level,
    const char *fmt, ...) PRINTF_LIKE(4, 5);

/*
 * utf8_escape() for words that stand in quotes: quotes and backslashes are
 * escaped, too.  A sentence without quotes around it goes through
 * utf8_escape().
 */
char *log_escape(char *dst, size_t dst_size, const char *src, size_t len);

#endif /* TRANSPORT_BASE_LOG_H */
