#include "transport/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "protos/utf8.h"

/* A longer line is cut: one write(2) keeps lines of several threads whole. */
#define LOG_LINE_MAX 2048
#define LOG_BURST    10u

static const char *log_program = "tributary";
static enum log_level log_threshold = LOG_LEVEL_INFO;
static bool log_to_journal;
static bool log_waits = true;
static atomic_uint log_lost; /* lines, since the last that was written */

static struct {
	atomic_bool on;
	pthread_mutex_t lock; /* of n and text */
	size_t n;
	char text[LOG_HELD_MAX];
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const struct {
	const char *word;
	int syslog_priority;
} log_levels[] = {
	[LOG_LEVEL_ERROR] = { "error", 3 },
	[LOG_LEVEL_WARN] = { "warn", 4 },
	[LOG_LEVEL_INFO] = { "info", 6 },
	[LOG_LEVEL_DEBUG] = { "debug", 7 },
};

#define LOG_LEVELS (sizeof(log_levels) / sizeof(log_levels[0]))

void
log_init(const char *program, enum log_level level)
{
	log_program = program;
	log_threshold = level;
	/* journald stamps lines itself and reads a <priority> prefix. */
	log_to_journal = getenv("JOURNAL_STREAM") != NULL;
}

void
log_never_wait(void)
{
	log_waits = false;
}

int
log_level_parse(const char *word, enum log_level *out)
{
	size_t i;

	for (i = 0; i < LOG_LEVELS; i++) {
		if (strcmp(word, log_levels[i].word) == 0) {
			*out = (enum log_level)i;
			return 0;
		}
	}
	return -1;
}

static size_t
log_prefix(char *line, size_t size, enum log_level level)
{
	struct timespec ts;
	struct tm tm;
	size_t n;

	if (log_to_journal)
		return (size_t)snprintf(line, size, "<%d>",
		    log_levels[level].syslog_priority);
	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	n = strftime(line, size, "%Y-%m-%d %H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, size - n, ".%03ld %.32s %-5s ",
	    ts.tv_nsec / 1000000, log_program, log_levels[level].word);
	return n;
}

/* A pipe that is writable takes a line without waiting: PIPE_BUF is longer. */
static bool
has_room(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	return log_waits || poll(&p, 1, 0) != 0;
}

static void
write_out(const char *text, size_t n)
{
	if (write(STDERR_FILENO, text, n) < 0) {
		/* Nowhere to complain to. */
	}
}

/* With the lock held. */
static void
stop_holding(void)
{
	if (held.n > 0)
		write_out(held.text, held.n);
	held.n = 0;
	atomic_store(&held.on, false);
}

/* Holds a line back.  False: lines are not held; write it. */
static bool
hold(const char *line, size_t n)
{
	bool kept;

	if (!atomic_load(&held.on))
		return false;
	pthread_mutex_lock(&held.lock);
	if (n > sizeof(held.text) - held.n)
		stop_holding();
	kept = atomic_load(&held.on);
	if (kept) {
		memcpy(held.text + held.n, line, n);
		held.n += n;
	}
	pthread_mutex_unlock(&held.lock);
	return kept;
}

void
log_release(void)
{
	pthread_mutex_lock(&held.lock);
	stop_holding();
	pthread_mutex_unlock(&held.lock);
}

void
log_hold(void)
{
	/* Held lines say why a start failed: exit() must write them. */
	if (atexit(log_release) == 0)
		atomic_store(&held.on, true);
}

/* False: the line is lost, as standard error has no room. */
static bool
log_write(const char *line, size_t n)
{
	if (hold(line, n))
		return true;
	if (!has_room())
		return false;
	write_out(line, n);
	return true;
}

/* Says how many lines were left out, ahead of the next one. */
static bool
log_tell_lost(void)
{
	unsigned lost = atomic_exchange(&log_lost, 0);
	char line[160];
	size_t n;

	if (lost == 0)
		return true;
	n = log_prefix(line, sizeof(line), LOG_LEVEL_WARN);
	n += (size_t)snprintf(line + n, sizeof(line) - n,
	    "%u lines of this log are lost: its reader did not take "
	    "them\n", lost);
	if (log_write(line, n))
		return true;
	atomic_fetch_add(&log_lost, lost);
	return false;
}

static void PRINTF_LIKE(2, 0)
log_line(enum log_level level, const char *fmt, va_list ap)
{
	char text[LOG_LINE_MAX], line[LOG_LINE_MAX];
	int saved_errno = errno;
	size_t n;

	if (level > log_threshold)
		return;
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	n = log_prefix(line, sizeof(line), level);
	/* The last defence: a caller forgot log_escape(). */
	utf8_escape(line + n, sizeof(line) - n - 1, text, strlen(text), "");
	n += strlen(line + n);
	line[n++] = '\n';
	if (!log_tell_lost() || !log_write(line, n))
		atomic_fetch_add(&log_lost, 1);
	errno = saved_errno;
}

#define LOG_FUNCTION(name, level)                                              \
	void log_##name(const char *fmt, ...)                                  \
	{                                                                      \
		va_list ap;                                                    \
                                                                               \
		va_start(ap, fmt);                                             \
		log_line(level, fmt, ap);                                      \
		va_end(ap);                                                    \
	}

LOG_FUNCTION(error, LOG_LEVEL_ERROR)
LOG_FUNCTION(warn, LOG_LEVEL_WARN)
LOG_FUNCTION(info, LOG_LEVEL_INFO)
LOG_FUNCTION(debug, LOG_LEVEL_DEBUG)

int
log_allowed(struct log_limit *l, uint64_t now_ms, uint32_t *swallowed)
{
	uint64_t earned;

	if (now_ms > l->last_ms) {
		earned = (now_ms - l->last_ms) / 1000;
		if (earned >= l->tokens_used) {
			l->tokens_used = 0;
			l->last_ms = now_ms;
		} else {
			l->tokens_used -= (uint32_t)earned;
			l->last_ms += earned * 1000;
		}
	}
	if (l->tokens_used >= LOG_BURST) {
		l->swallowed++;
		return 0;
	}
	l->tokens_used++;
	*swallowed = l->swallowed;
	l->swallowed = 0;
	return 1;
}

static void
log_at(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void
log_at(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(level, fmt, ap);
	va_end(ap);
}

void
log_limited(struct log_limit *l, uint64_t now_ms, enum log_level level,
    const char *fmt, ...)
{
	char text[LOG_LINE_MAX];
	uint32_t swallowed;
	va_list ap;

	/* A line below the level takes no token. */
	if (level > log_threshold || !log_allowed(l, now_ms, &swallowed))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (swallowed > 0)
		log_at(level, "%s (%u more such lines left out)", text,
		    swallowed);
	else
		log_at(level, "%s", text);
}

char *
log_escape(char *dst, size_t dst_size, const char *src, size_t len)
{
	return utf8_escape(dst, dst_size, src, len, "\"'\\");
}
