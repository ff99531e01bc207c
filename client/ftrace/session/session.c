/* A session's life. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ftrace/events/event_plan.h"
#include "client/ftrace/events/kernel_symbols.h"
#include "client/ftrace/events/syscall_filter.h"
#include "client/ftrace/session/ftrace_internal.h"
#include "transport/base/log.h"

#define KALLSYMS_BYTES 65536u

void
session_problem(struct ftrace_session *s, const char *fmt, ...)
{
	char text[1024], *all = NULL;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warn("linux.ftrace: %s", text);
	if (asprintf(&all, "%s%s%s", s->problems != NULL ? s->problems : "",
	    s->problems != NULL ? "\n" : "", text) < 0)
		return;
	free(s->problems);
	s->problems = all;
}

void
session_list_add(char ***list, size_t *n, const char *group, const char *name)
{
	char **larger = realloc(*list, (*n + 1) * sizeof(**list));

	if (larger == NULL)
		return;
	*list = larger;
	if (asprintf(&larger[*n], "%s%s%s", group, group[0] != '\0' ? "/" : "",
	    name) >= 0)
		++*n;
}

/* ---- names of symbols ---- */

static bool
feed_symbols(struct kernel_symbols *k, int fd)
{
	char *part = malloc(KALLSYMS_BYTES);
	ssize_t n = -1;

	while (part != NULL && ((n = read(fd, part, KALLSYMS_BYTES)) > 0 ||
	    (n < 0 && errno == EINTR))) {
		if (n > 0 && !kernel_symbols_feed(k, part, (size_t)n))
			break;
	}
	free(part);
	return n == 0;
}

/*
 * Read anew where no session has them: modules come and go.  Several MB, some
 * tens of milliseconds.
 */
static void
read_symbols(struct ftrace_session *s)
{
	struct ftrace *f = s->ftrace;
	int fd;

	if (f->symbols == NULL) {
		if ((f->symbols = kernel_symbols_new()) == NULL)
			return;
		fd = open(f->kallsyms, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || !feed_symbols(f->symbols, fd))
			session_problem(s, "%s cannot be read whole: %s",
			    f->kallsyms, strerror(errno));
		if (fd >= 0)
			close(fd);
		f->n_symbols = kernel_symbols_end(f->symbols);
	}
	s->uses_symbols = true;
	f->n_symbol_users++;
	if (f->n_symbols == 0)
		session_problem(s, "functions have no names in this trace: the "
		    "kernel hides its addresses (kernel.kptr_restrict)");
}

static void
leave_symbols(struct ftrace_session *s)
{
	struct ftrace *f = s->ftrace;

	if (!s->uses_symbols)
		return;
	s->uses_symbols = false;
	if (--f->n_symbol_users > 0 || s->config->keep_symbols)
		return;
	kernel_symbols_free(f->symbols);
	f->symbols = NULL;
	f->n_symbols = 0;
}

/* ---- set-up ---- */

static void
take_syscalls(struct ftrace_session *s)
{
	size_t i;

	for (i = 0; i < s->config->n_syscalls; i++) {
		if (!syscall_filter_add(&s->syscalls, s->config->syscalls[i]))
			session_problem(s, "the system call \"%.100s\" is not "
			    "recorded: this machine has no such call",
			    s->config->syscalls[i]);
	}
}

static void
prepare_bundle(struct ftrace_session *s)
{
	const struct ftrace_bundle_setup setup = {
		.env = {
			.symbols = &s->addresses,
			.strings = s->ftrace->strings,
			.pids = &s->threads,
		},
		.print = { s->config->print_rules, s->config->n_print_rules },
		.syscalls = s->config->n_syscalls > 0 ? &s->syscalls : NULL,
		.symbols = s->uses_symbols ? s->ftrace->symbols : NULL,
		.compact = s->config->compact_sched,
	};

	ftrace_bundle_init(&s->bundle, &setup);
}

/* Settings of a whole ring, which its first session alone may choose. */
static void
check_shared_settings(struct ftrace_session *s, bool first)
{
	const struct ftrace_config *c = s->config;

	if (first)
		return;
	if (c->n_options > 0 || c->cpumask != NULL)
		session_problem(s, "tracefs_options and tracing_cpumask have "
		    "no effect: another session records from the same buffer, "
		    "and an instance_name of its own would help");
	if (c->preserve_buffer)
		session_problem(s, "preserve_ftrace_buffer has no effect: "
		    "another session reads the same buffer");
}

static int
join_ring(struct ftrace_session *s)
{
	char why[FTRACE_WHY_MAX];
	struct ring *r;

	if (!tracefs_lock(s->ftrace->tracefs, why) ||
	    (r = ring_get(s->ftrace, s->config, why)) == NULL) {
		session_problem(s, "nothing is recorded: %s", why);
		if (s->ftrace->n_sessions == 0)
			tracefs_unlock(s->ftrace->tracefs);
		return 0;
	}
	s->ring = r;
	check_shared_settings(s, TAILQ_EMPTY(&r->sessions));
	TAILQ_INSERT_TAIL(&r->sessions, s, next);
	s->ftrace->n_sessions++;
	s->state = SESSION_SET_UP;
	s->ends = calloc(r->n_cpus, sizeof(*s->ends));
	s->stats_begin = calloc(r->n_cpus, sizeof(*s->stats_begin));
	if (s->ends == NULL || s->stats_begin == NULL)
		return -1;
	ring_add_events(r, s);
	ring_set_filters(r);
	if (changes_noted(s->ftrace->changes) < 0)
		log_warn("linux.ftrace: %s cannot be written (%s): should this "
		    "process be killed, what it changed in tracefs stays",
		    s->ftrace->notes[0] != '\0' ? s->ftrace->notes :
		    "a file below /run", strerror(errno));
	return 0;
}

/* Makes a session that records nothing as yet. */
static struct ftrace_session *
make_session(struct ftrace *f, struct ftrace_config *config,
    const struct ftrace_output *out)
{
	struct ftrace_session *s;

	if ((s = calloc(1, sizeof(*s))) == NULL) {
		ftrace_config_free(config);
		return NULL;
	}
	s->ftrace = f;
	s->config = config;
	s->out = *out;
	s->state = SESSION_FAILED;
	return s;
}

struct ftrace_session *
ftrace_session_refused(struct ftrace *f, const char *why,
    const struct ftrace_output *out)
{
	char no_why[FTRACE_CONFIG_WHY_MAX];
	struct ftrace_config *empty = ftrace_config_new((const uint8_t *)"", 0,
	    no_why);
	struct ftrace_session *s = NULL;

	if (empty == NULL || (s = make_session(f, empty, out)) == NULL)
		return NULL;
	session_problem(s, "nothing is recorded: %s", why);
	prepare_bundle(s);
	return s;
}

struct ftrace_session *
ftrace_session_new(struct ftrace *f, struct ftrace_config *config,
    const struct ftrace_output *out)
{
	struct ftrace_session *s = make_session(f, config, out);
	size_t i;

	if (s == NULL)
		return NULL;
	for (i = 0; i < config->n_warnings; i++)
		session_problem(s, "%s", config->warnings[i]);
	take_syscalls(s);
	if (config->symbolize)
		read_symbols(s);
	prepare_bundle(s);
	if (join_ring(s) < 0)
		goto fail;
	return s;

fail:
	ftrace_session_free(s);
	return NULL;
}

/* ---- recording ---- */

void
ftrace_session_start(struct ftrace_session *s)
{
	struct ring *r = s->ring;

	if (s->state == SESSION_FAILED) {
		session_stats_begin(s);
		return;
	}
	if (s->state != SESSION_SET_UP)
		return;
	/* A buffer that is kept has events of before. */
	if (!s->config->preserve_buffer) {
		s->begin = ring_now(r);
		/* Without their times: they go to the other sessions now. */
		if (s->begin == 0)
			ring_sweep_now(r);
	}
	s->state = SESSION_STARTED;
	session_stats_begin(s);
	ring_sessions_changed(r);
}

void
session_swept(struct ftrace_session *s, uint64_t sweep_no)
{
	void (*done)(void *arg) = s->flush_done;

	if (s->flush_sweep == 0 || s->flush_sweep > sweep_no)
		return;
	s->flush_sweep = 0;
	session_stats_write(s);
	done(s->flush_arg);
}

void
ftrace_session_flush(struct ftrace_session *s, void (*done)(void *arg),
    void *arg)
{
	if (s->state != SESSION_STARTED) {
		done(arg);
		return;
	}
	s->flush_done = done;
	s->flush_arg = arg;
	s->flush_sweep = ring_sweep(s->ring, true);
}

void
ftrace_session_clear_incremental_state(struct ftrace_session *s)
{
	pid_notes_renew(&s->threads);
	symbol_index_clear(&s->addresses);
}

void
ftrace_session_packet_lost(struct ftrace_session *s)
{
	symbol_index_clear(&s->addresses);
}

void
ftrace_session_stop(struct ftrace_session *s)
{
	if (s->state != SESSION_STARTED)
		return;
	ring_sweep_now(s->ring);
	session_stats_write(s);
	s->state = SESSION_STOPPED;
	s->flush_sweep = 0;
	ring_sessions_changed(s->ring);
}

static void
leave_ring(struct ftrace_session *s)
{
	struct ftrace *f = s->ftrace;
	struct ring *r = s->ring;

	if (r == NULL)
		return;
	TAILQ_REMOVE(&r->sessions, s, next);
	ring_drop_events(r, s);
	ring_leave(r);
	if (--f->n_sessions == 0)
		tracefs_unlock(f->tracefs);
}

static void
free_names(char **names, size_t n)
{
	while (n > 0)
		free(names[--n]);
	free(names);
}

void
ftrace_session_free(struct ftrace_session *s)
{
	size_t i;

	if (s == NULL)
		return;
	leave_ring(s);
	leave_symbols(s);
	ftrace_bundle_done(&s->bundle);
	for (i = 0; i < s->n_events; i++)
		event_plan_free(s->events[i].plan);
	free(s->events);
	free(s->changed);
	pid_notes_done(&s->threads);
	symbol_index_done(&s->addresses);
	free(s->ends);
	free(s->stats_begin);
	free_names(s->unknown, s->n_unknown);
	free_names(s->failed, s->n_failed);
	free(s->problems);
	ftrace_config_free(s->config);
	free(s);
}
