#include "client/ftrace/config/ftrace_config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/config_support.h"
#include "protos/fields.h"
#include "protos/ftrace_config.pb-c.h"
#include "transport/wire/pb_reader.h"

/* Perfetto's, of each processor. */
#define BUFFER_SMALL_KB (2u << 10)
#define BUFFER_LARGE_KB (8u << 10)
#define LARGE_MEMORY    (7ull << 30)

typedef Perfetto__Protos__FtraceConfig ftrace_message;
typedef Perfetto__Protos__FtraceConfig__PrintFilter__Rule rule_message;
typedef Perfetto__Protos__FtraceConfig__TracefsOption option_message;

static const char no_memory[] = "there is no memory for the config of ftrace";

/* A config in the making; failed: memory is short. */
struct making {
	struct ftrace_config *c;
	const ftrace_message *m;
	bool failed;
};

static void warn(struct making *k, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void
warn(struct making *k, const char *fmt, ...)
{
	struct ftrace_config *c = k->c;
	char **grown = realloc(c->warnings,
	    (c->n_warnings + 1) * sizeof(*grown));
	va_list ap;
	char *text;
	int n;

	if (grown == NULL) {
		k->failed = true;
		return;
	}
	c->warnings = grown;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		k->failed = true;
	else
		c->warnings[c->n_warnings++] = text;
}

static void
without_effect_cb(void *arg, const char *path, const char *text)
{
	struct making *k = arg;

	(void)path;
	warn(k, "%s", text);
}

/* Room for n of them; NULL where n is 0. */
static void *
room(struct making *k, size_t n, size_t size)
{
	void *p;

	if (n == 0 || k->failed)
		return NULL;
	if ((p = calloc(n, size)) == NULL)
		k->failed = true;
	return p;
}

/*
 * Whether all of it may be in the name of a file: it becomes part of a path
 * that root writes to.
 */
static bool
is_name(const char *s, const char *others)
{
	if (s[0] == '\0' || s[0] == '.')
		return false;
	for (; *s != '\0'; s++)
		if (!isalnum((unsigned char)*s) && strchr(others, *s) == NULL)
			return false;
	return true;
}

static bool
take_event(struct making *k, struct ftrace_event_name *e, const char *text)
{
	const char *slash = strchr(text, '/');

	*e = (struct ftrace_event_name){
		.group = "*", .name = text, .text = text
	};
	if (slash != NULL) {
		if ((e->cut = strdup(text)) == NULL) {
			k->failed = true;
			return false;
		}
		e->cut[slash - text] = '\0';
		e->group = e->cut;
		e->name = e->cut + (slash - text) + 1;
	}
	if (is_name(e->group, "_-:.*?") && is_name(e->name, "_-:.*?"))
		return true;
	warn(k, "the event \"%.100s\" is not recorded: an event is named "
	    "group/name, such as sched/sched_switch", text);
	free(e->cut);
	return false;
}

static void
take_events(struct making *k)
{
	struct ftrace_config *c = k->c;
	size_t i;

	c->events = room(k, k->m->n_ftrace_events, sizeof(*c->events));
	if (c->events == NULL)
		return;
	for (i = 0; i < k->m->n_ftrace_events && !k->failed; i++)
		if (take_event(k, &c->events[c->n_events],
		    k->m->ftrace_events[i]))
			c->n_events++;
}

static void
take_syscalls(struct making *k)
{
	struct ftrace_config *c = k->c;
	size_t i;

	c->syscalls = room(k, k->m->n_syscall_events, sizeof(*c->syscalls));
	if (c->syscalls == NULL)
		return;
	for (i = 0; i < k->m->n_syscall_events; i++)
		if (k->m->syscall_events[i][0] != '\0')
			c->syscalls[c->n_syscalls++] = k->m->syscall_events[i];
}

static void
take_rule(struct making *k, const rule_message *m)
{
	struct ftrace_config *c = k->c;
	struct ftrace_print_rule r = {
		.type = "", .prefix = "", .allow = m->allow
	};

	switch (m->match_case) {
	case PERFETTO__PROTOS__FTRACE_CONFIG__PRINT_FILTER__RULE__MATCH_PREFIX:
		r.match = FTRACE_PRINT_PREFIX;
		r.prefix = m->prefix;
		break;
	case PERFETTO__PROTOS__FTRACE_CONFIG__PRINT_FILTER__RULE__MATCH_ATRACE_MSG:
		r.match = FTRACE_PRINT_ATRACE;
		if (m->atrace_msg->type != NULL)
			r.type = m->atrace_msg->type;
		if (m->atrace_msg->prefix != NULL)
			r.prefix = m->atrace_msg->prefix;
		break;
	default:
		warn(k, "a rule of print_filter without prefix and atrace_msg "
		    "has no effect: it says nothing of the texts it is for");
		return;
	}
	c->print_rules[c->n_print_rules++] = r;
}

static void
take_rules(struct making *k)
{
	struct ftrace_config *c = k->c;
	size_t i;

	if (k->m->print_filter == NULL)
		return;
	c->print_rules = room(k, k->m->print_filter->n_rules,
	    sizeof(*c->print_rules));
	if (c->print_rules == NULL)
		return;
	for (i = 0; i < k->m->print_filter->n_rules; i++)
		take_rule(k, k->m->print_filter->rules[i]);
}

static void
take_option(struct making *k, const option_message *m)
{
	struct ftrace_config *c = k->c;
	struct ftrace_option o = { .name = m->name != NULL ? m->name : "" };

	if (!is_name(o.name, "_-")) {
		warn(k, "the tracefs option \"%.100s\" is not set: an option "
		    "is named as in tracefs/options", o.name);
		return;
	}
	switch (m->state) {
	case PERFETTO__PROTOS__FTRACE_CONFIG__TRACEFS_OPTION__STATE__STATE_ENABLED:
		o.on = true;
		break;
	case PERFETTO__PROTOS__FTRACE_CONFIG__TRACEFS_OPTION__STATE__STATE_DISABLED:
		break;
	default:
		warn(k, "the tracefs option %.100s is not set: it needs a "
		    "state, STATE_ENABLED or STATE_DISABLED", o.name);
		return;
	}
	c->options[c->n_options++] = o;
}

static void
take_options(struct making *k)
{
	struct ftrace_config *c = k->c;
	size_t i;

	c->options = room(k, k->m->n_tracefs_options, sizeof(*c->options));
	if (c->options == NULL)
		return;
	for (i = 0; i < k->m->n_tracefs_options; i++)
		take_option(k, k->m->tracefs_options[i]);
}

static void
take_cpumask(struct making *k)
{
	const char *mask = k->m->tracing_cpumask;

	if (mask == NULL || mask[0] == '\0')
		return;
	if (strspn(mask, "0123456789abcdefABCDEF,") == strlen(mask))
		k->c->cpumask = mask;
	else
		warn(k, "tracing_cpumask \"%.100s\" is not set: it has to be "
		    "hexadecimal, a bit for each processor, such as \"f\"",
		    mask);
}

static void
take_times(struct making *k)
{
	struct ftrace_config *c = k->c;

	c->drain_ms = k->m->drain_period_ms;
	if (c->drain_ms > FTRACE_DRAIN_MAX_MS)
		warn(k, "drain_period_ms of %u is taken as %u: it is at most "
		    "%u", c->drain_ms, FTRACE_DRAIN_DEFAULT_MS,
		    FTRACE_DRAIN_MAX_MS);
	if (c->drain_ms == 0 || c->drain_ms > FTRACE_DRAIN_MAX_MS)
		c->drain_ms = FTRACE_DRAIN_DEFAULT_MS;
	c->drain_percent = k->m->drain_buffer_percent;
	if (c->drain_percent > 100) {
		warn(k, "drain_buffer_percent of %u has no effect: it is at "
		    "most 100", c->drain_percent);
		c->drain_percent = 0;
	}
}

static void
take_all(struct making *k)
{
	const ftrace_message *m = k->m;
	struct ftrace_config *c = k->c;

	if (m->instance_name != NULL && m->instance_name[0] != '\0')
		c->instance = m->instance_name;
	take_events(k);
	take_syscalls(k);
	take_rules(k);
	take_options(k);
	take_cpumask(k);
	take_times(k);
	c->tids = m->tids_to_trace;
	c->n_tids = m->n_tids_to_trace;
	c->buffer_kb = m->buffer_size_kb;
	c->buffer_at_least = m->buffer_size_lower_bound;
	c->leave_out_generic = m->disable_generic_events;
	c->throttle_rss_stat = m->throttle_rss_stat;
	c->preserve_buffer = m->preserve_ftrace_buffer;
	c->monotonic_raw = m->use_monotonic_raw_clock;
	c->dense_generic = m->denser_generic_event_encoding;
	c->symbolize = m->symbolize_ksyms;
	c->keep_symbols = m->ksyms_mem_policy ==
	    PERFETTO__PROTOS__FTRACE_CONFIG__KSYMS_MEM_POLICY__KSYMS_RETAIN;
	c->compact_sched = m->compact_sched == NULL ||
	    !m->compact_sched->has_enabled || m->compact_sched->enabled;
	if (c->n_events == 0 && c->n_syscalls == 0)
		warn(k, "the config of linux.ftrace names no event that can be "
		    "recorded: ftrace_events: \"sched/sched_switch\" names "
		    "one");
}

/* NULL: fine; else a sentence. */
static const char *
refusal(const struct ftrace_config *c)
{
	if (c->instance == NULL)
		return NULL;
	if (strcmp(c->instance, "hyp") == 0 ||
	    strcmp(c->instance, "hypervisor") == 0)
		return "the instance_name is reserved for tracing a "
		    "hypervisor, which tributary-probes does not do";
	if (!is_name(c->instance, "_-:.@"))
		return "the instance_name is no name of a folder in "
		    "tracefs/instances";
	return NULL;
}

/* The encoded FtraceConfig, of length 0 where there is none; false: malformed. */
static bool
find_ftrace(const uint8_t *data, size_t len, struct pb_field *out)
{
	struct pb_reader r;
	struct pb_field f;

	*out = (struct pb_field){ .len = 0 };
	PB_FOREACH(&f, &r, data, len) {
		if (f.number == DataSourceConfig_ftrace_config &&
		    f.wire == PB_BYTES)
			*out = f;
	}
	return !r.bad;
}

static const char *
make(struct making *k, const struct pb_field *encoded)
{
	k->c->message = perfetto__protos__ftrace_config__unpack(NULL,
	    encoded->len, encoded->data);
	if (k->c->message == NULL)
		return "the config of ftrace is malformed";
	k->m = k->c->message;
	config_support_check_ftrace(encoded->data, encoded->len,
	    without_effect_cb, k);
	take_all(k);
	return k->failed ? no_memory : refusal(k->c);
}

struct ftrace_config *
ftrace_config_new(const uint8_t *data_source_config, size_t len,
    char why[FTRACE_CONFIG_WHY_MAX])
{
	struct making k = { .c = calloc(1, sizeof(*k.c)) };
	const char *problem = no_memory;
	struct pb_field encoded;

	if (!find_ftrace(data_source_config, len, &encoded))
		problem = "the config of the data source is malformed";
	else if (k.c != NULL)
		problem = make(&k, &encoded);
	if (problem == NULL)
		return k.c;
	snprintf(why, FTRACE_CONFIG_WHY_MAX, "%s", problem);
	ftrace_config_free(k.c);
	return NULL;
}

void
ftrace_config_free(struct ftrace_config *c)
{
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; i < c->n_events; i++)
		free(c->events[i].cut);
	for (i = 0; i < c->n_warnings; i++)
		free(c->warnings[i]);
	free(c->events);
	free(c->warnings);
	free(c->syscalls);
	free(c->print_rules);
	free(c->options);
	if (c->message != NULL)
		perfetto__protos__ftrace_config__free_unpacked(c->message,
		    NULL);
	free(c);
}

uint32_t
ftrace_config_buffer_kb(const struct ftrace_config *c, uint64_t memory_bytes)
{
	const uint32_t usual = memory_bytes >= LARGE_MEMORY ?
	    BUFFER_LARGE_KB : BUFFER_SMALL_KB;

	if (c->buffer_kb == 0 || (c->buffer_at_least && c->buffer_kb < usual))
		return usual;
	return c->buffer_kb;
}
