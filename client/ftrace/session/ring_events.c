/*
 * Events that the kernel writes into a buffer: the union of those that its
 * sessions asked for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/event_plan.h"
#include "client/ftrace/events/event_table.h"
#include "client/ftrace/format/event_format.h"
#include "client/ftrace/session/ftrace_internal.h"
#include "transport/base/log.h"

/* Under way: the events of a session. */
struct adding {
	struct ring *ring;
	struct ftrace_session *session;
};

/* ids are looked up for each record. */
static bool
has_room_for(struct ftrace_session *s, uint16_t id)
{
	size_t n = (size_t)id + 1;
	struct session_event *larger;

	if (id < s->n_events)
		return true;
	larger = realloc(s->events, n * sizeof(*larger));
	if (larger == NULL)
		return false;
	memset(larger + s->n_events, 0, (n - s->n_events) * sizeof(*larger));
	s->events = larger;
	s->n_events = n;
	return true;
}

/* As session_event.changed_at. */
static uint16_t
changed_at(const struct event_format *format)
{
	static const char *const events[] = { "task_newtask", "task_rename",
		"sched_process_exec" };
	const struct event_field *pid = event_format_field(format, "pid");
	size_t i;

	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (strcmp(format->name, events[i]) == 0)
			return pid != NULL && pid->size == 4 ? pid->offset : 0;
	}
	return 0;
}

static struct event_format *
read_format(struct ring *r, const char *group, const char *name, char *why,
    size_t why_size)
{
	char path[TRACEFS_PATH_MAX], file[TRACEFS_PATH_MAX], *text;
	struct event_format *format;
	size_t len;

	snprintf(file, sizeof(file), "events/%.100s/%.100s/format", group,
	    name);
	ring_path(r, path, file);
	if ((text = tracefs_read(r->ftrace->tracefs, path, &len)) == NULL) {
		snprintf(why, why_size, "%s", strerror(errno));
		return NULL;
	}
	format = event_format_parse(group, text, len, why, why_size);
	free(text);
	return format;
}

static void
enable_path(char file[TRACEFS_PATH_MAX], const char *group, const char *name)
{
	snprintf(file, TRACEFS_PATH_MAX, "events/%.100s/%.100s/enable", group,
	    name);
}

/* Events of the group ftrace are written without being asked for. */
static int
enable(struct ring *r, const char *group, const char *name)
{
	char file[TRACEFS_PATH_MAX];

	if (strcmp(group, "ftrace") == 0)
		return 0;
	enable_path(file, group, name);
	return ring_set(r, file, "1");
}

static void
add_event(void *arg, const char *group, const char *name)
{
	struct adding *a = arg;
	struct ftrace_session *s = a->session;
	const struct ftrace_config *c = s->config;
	struct event_format *format;
	struct event_plan *plan;
	char why[256];

	if (c->leave_out_generic && event_table_find(group, name) == NULL) {
		session_list_add(&s->failed, &s->n_failed, group, name);
		return;
	}
	format = read_format(a->ring, group, name, why, sizeof(why));
	if (format == NULL) {
		log_warn("linux.ftrace: the event %s/%s cannot be understood: "
		    "%s", group, name, why);
		session_list_add(&s->failed, &s->n_failed, group, name);
		return;
	}
	if (!has_room_for(s, format->id) ||
	    s->events[format->id].plan != NULL)
		goto out;
	plan = event_plan_new(format, c->dense_generic ? EVENT_PLAN_DESCRIBED :
	    EVENT_PLAN_GENERIC);
	if (plan == NULL || enable(a->ring, group, name) < 0) {
		log_warn("linux.ftrace: the event %s/%s cannot be switched on: "
		    "%s", group, name, strerror(errno));
		session_list_add(&s->failed, &s->n_failed, group, name);
		event_plan_free(plan);
		goto out;
	}
	s->events[format->id].plan = plan;
	s->events[format->id].changed_at = changed_at(format);
out:
	event_format_free(format);
}

/*
 * A name without a group is that of a well-known event, or of any group that
 * has it.
 */
static void
add_named(struct adding *a, const struct ftrace_event_name *e)
{
	struct ftrace_session *s = a->session;
	const char *group = e->group;

	if (strcmp(group, "*") == 0 && event_table_group(e->name) != NULL)
		group = event_table_group(e->name);
	if (s->config->throttle_rss_stat && strcmp(e->name, "rss_stat") == 0 &&
	    tracefs_each_event(a->ring->ftrace->tracefs, a->ring->prefix,
	    "synthetic", "rss_stat_throttled", add_event, a) > 0)
		return;
	if (tracefs_each_event(a->ring->ftrace->tracefs, a->ring->prefix,
	    group, e->name, add_event, a) == 0)
		session_list_add(&s->unknown, &s->n_unknown, "", e->text);
}

void
ring_add_events(struct ring *r, struct ftrace_session *s)
{
	static const struct ftrace_event_name syscalls[] = {
		{ .group = "raw_syscalls", .name = "sys_enter",
		    .text = "raw_syscalls/sys_enter" },
		{ .group = "raw_syscalls", .name = "sys_exit",
		    .text = "raw_syscalls/sys_exit" },
	};
	struct adding a = { r, s };
	size_t i;

	for (i = 0; i < s->config->n_events; i++)
		add_named(&a, &s->config->events[i]);
	for (i = 0; i < 2 && s->config->n_syscalls > 0; i++)
		add_named(&a, &syscalls[i]);
	for (i = 0; i < s->n_unknown; i++)
		log_warn("linux.ftrace: this kernel has no event %s",
		    s->unknown[i]);
}

static bool
is_wanted(const struct ring *r, size_t id)
{
	const struct ftrace_session *s;

	TAILQ_FOREACH(s, &r->sessions, next) {
		if (id < s->n_events && s->events[id].plan != NULL)
			return true;
	}
	return false;
}

void
ring_drop_events(struct ring *r, struct ftrace_session *s)
{
	char file[TRACEFS_PATH_MAX], path[TRACEFS_PATH_MAX];
	const struct event_plan *plan;
	size_t id;

	for (id = 0; id < s->n_events; id++) {
		if ((plan = s->events[id].plan) == NULL || is_wanted(r, id))
			continue;
		enable_path(file, plan->group, plan->name);
		ring_path(r, path, file);
		changes_undo(r->ftrace->changes, path);
	}
}

/* Threads of all sessions; false: one of them wants all threads. */
static bool
list_threads(const struct ring *r, char **list)
{
	const struct ftrace_session *s;
	char *longer;
	size_t i;

	TAILQ_FOREACH(s, &r->sessions, next) {
		if (s->config->n_tids == 0)
			return false;
		for (i = 0; i < s->config->n_tids; i++) {
			if (asprintf(&longer, "%s%u ", *list != NULL ? *list :
			    "", s->config->tids[i]) < 0)
				return false;
			free(*list);
			*list = longer;
		}
	}
	return *list != NULL;
}

/* value NULL: as it was before our sessions. */
static void
set_or_undo(struct ring *r, const char *name, const char *value)
{
	char path[TRACEFS_PATH_MAX];

	ring_path(r, path, name);
	if (value == NULL)
		changes_undo(r->ftrace->changes, path);
	else if (changes_set(r->ftrace->changes, path, value) < 0)
		log_warn("linux.ftrace: %s/%s cannot be set: %s",
		    tracefs_root(r->ftrace->tracefs), path, strerror(errno));
}

static bool
wants_syscalls(const struct ftrace_session *s)
{
	const struct event_plan *plan;
	size_t id;

	for (id = 0; id < s->n_events; id++) {
		plan = s->events[id].plan;
		if (plan != NULL && strcmp(plan->group, "raw_syscalls") == 0)
			return true;
	}
	return false;
}

/* System calls of all sessions; false: one of them wants all, or none any. */
static bool
list_syscalls(const struct ring *r, char text[SYSCALL_FILTER_TEXT_MAX + 1])
{
	struct syscall_filter all = { { 0 } };
	const struct ftrace_session *s;

	TAILQ_FOREACH(s, &r->sessions, next) {
		if (!wants_syscalls(s))
			continue;
		if (s->config->n_syscalls == 0)
			return false;
		syscall_filter_join(&all, &s->syscalls);
	}
	return syscall_filter_text(&all, text);
}

void
ring_set_filters(struct ring *r)
{
	char calls[SYSCALL_FILTER_TEXT_MAX + 1], *list = NULL;
	bool some;

	some = list_threads(r, &list);
	set_or_undo(r, "set_event_pid", some ? list : NULL);
	free(list);
	some = list_syscalls(r, calls);
	set_or_undo(r, "events/raw_syscalls/sys_enter/filter",
	    some ? calls : NULL);
	set_or_undo(r, "events/raw_syscalls/sys_exit/filter",
	    some ? calls : NULL);
}
