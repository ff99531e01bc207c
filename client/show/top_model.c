#include "client/show/top_model.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/show/machines_text.h"
#include "client/show/top_counts.h"
#include "client/show/top_table.h"
#include "client/text/colour.h"
#include "client/text/sparkline.h"
#include "client/text/text_width.h"
#include "protos/control.pb-c.h"
#include "protos/link.pb-c.h"
#include "protos/utf8.h"
#include "transport/base/human_numbers.h"

#define LINE_BYTES 512

struct top_model {
	char collector[TOP_CELL];
	char trouble[LINE_BYTES];
	char summary[LINE_BYTES];
	char overload[LINE_BYTES];
	struct top_table sessions, machines, producers;
	struct top_counts session_counts, machine_counts, producer_counts;
	struct top_rates total; /* of the sessions */
	uint64_t now_ns;    /* CLOCK_REALTIME of the collector */
	bool has_sessions;
	bool coloured;
};

enum {
	S_NAME, S_STATE, S_AGE, S_RATE, S_PACKETS, S_LOST, S_LOST_RATE,
	S_FILL, S_BUFFERS, S_FILE, S_PRODUCERS, S_TREND, S_COLUMNS
};
static const struct top_column session_columns[S_COLUMNS] = {
	[S_NAME] = { "SESSION", 0, false },
	[S_STATE] = { "STATE", 3, false },
	[S_AGE] = { "AGE", 6, true },
	[S_RATE] = { "RATE", 1, true },
	[S_PACKETS] = { "PACKETS/S", 4, true },
	[S_LOST] = { "LOST", 1, true },
	[S_LOST_RATE] = { "LOST/S", 2, true },
	[S_FILL] = { "FILL", 2, true },
	[S_BUFFERS] = { "BUFFERS", 7, true },
	[S_FILE] = { "FILE", 5, true },
	[S_PRODUCERS] = { "PRODUCERS", 8, true },
	/* Sparklines of rates, where the screen can show bars. */
	[S_TREND] = { "TREND", 9, false },
};

enum {
	M_NAME, M_STATE, M_RATE, M_LOST, M_LOST_RATE, M_WAITS, M_PRODUCERS,
	M_RECONNECTS, M_COLUMNS
};
static const struct top_column machine_columns[M_COLUMNS] = {
	[M_NAME] = { "MACHINE", 0, false },
	[M_STATE] = { "STATE", 3, false },
	[M_RATE] = { "RATE", 1, true },
	[M_LOST] = { "LOST", 1, true },
	[M_LOST_RATE] = { "LOST/S", 2, true },
	[M_WAITS] = { "WAITS THERE", 4, true },
	[M_PRODUCERS] = { "PRODUCERS", 5, true },
	[M_RECONNECTS] = { "CUTS", 6, true },
};

enum {
	P_NAME, P_MACHINE, P_PID, P_RATE, P_PACKETS, P_LOST, P_LOST_RATE,
	P_SOURCES, P_KERNEL, P_COLUMNS
};
static const struct top_column producer_columns[P_COLUMNS] = {
	[P_NAME] = { "PRODUCER", 0, false },
	[P_MACHINE] = { "MACHINE", 3, false },
	[P_PID] = { "PID", 5, true },
	[P_RATE] = { "RATE", 1, true },
	[P_PACKETS] = { "PACKETS/S", 4, true },
	[P_LOST] = { "LOST", 1, true },
	[P_LOST_RATE] = { "LOST/S", 2, true },
	[P_SOURCES] = { "ACTIVE", 6, true },
	/* Shown where any producer has lost some. */
	[P_KERNEL] = { "KERNEL LOST", 2, false },
};

struct top_model *
top_model_new(const char *collector)
{
	struct top_model *m;

	if ((m = calloc(1, sizeof(*m))) == NULL)
		return NULL;
	top_cell(m->collector, collector);
	m->sessions = (struct top_table){ .columns = session_columns,
		.n_columns = S_TREND };
	m->machines = (struct top_table){ .columns = machine_columns,
		.n_columns = M_COLUMNS };
	m->producers = (struct top_table){ .columns = producer_columns,
		.n_columns = P_COLUMNS };
	return m;
}

void
top_model_free(struct top_model *m)
{
	if (m == NULL)
		return;
	top_table_done(&m->sessions);
	top_table_done(&m->machines);
	top_table_done(&m->producers);
	top_counts_done(&m->session_counts);
	top_counts_done(&m->machine_counts);
	top_counts_done(&m->producer_counts);
	free(m);
}

void
top_model_look(struct top_model *m, bool coloured, bool trends)
{
	m->coloured = coloured;
	m->sessions.coloured = coloured;
	m->machines.coloured = coloured;
	m->producers.coloured = coloured;
	m->sessions.n_columns = trends ? S_COLUMNS : S_TREND;
}

/* ---- cells ---- */

static void
put_bytes_rate(char out[TOP_CELL], bool known, double rate)
{
	char text[HUMAN_TEXT_MAX];

	if (!known)
		strcpy(out, "-");
	else
		snprintf(out, TOP_CELL, "%s/s", human_bytes(text,
		    human_whole(rate)));
}

static void
put_count_rate(char out[TOP_CELL], bool known, double rate)
{
	char text[HUMAN_TEXT_MAX];

	if (!known)
		strcpy(out, "-");
	else if (rate > 0 && rate < 10)
		snprintf(out, TOP_CELL, "%.1f", rate);
	else
		snprintf(out, TOP_CELL, "%s", human_count(text,
		    human_whole(rate)));
}

static void
put_count(char out[TOP_CELL], uint64_t n)
{
	char text[HUMAN_TEXT_MAX];

	snprintf(out, TOP_CELL, "%s", human_count(text, n));
}

/* How much was lost, and how fast it goes on. */
static void
put_losses(struct top_row *row, size_t column, uint64_t lost,
    const struct top_rates *r)
{
	put_count(row->cells[column], lost);
	put_count_rate(row->cells[column + 1], r->known, r->lost);
	if (lost > 0)
		row->colours[column] = COLOUR_WARNING;
	if (r->lost > 0)
		row->colours[column + 1] = COLOUR_BAD;
}

static void
put_bytes(char out[TOP_CELL], uint64_t n)
{
	char text[HUMAN_TEXT_MAX];

	snprintf(out, TOP_CELL, "%s", human_bytes(text, n));
}

/* ---- sessions ---- */

static const char *
session_state(const Tributary__SessionState *s)
{
	switch (s->state) {
	case TRIBUTARY__SESSION_STATE__STATE__CONFIGURED:
		return s->trigger_mode == 1 ? "waits for trigger" : "waits";
	case TRIBUTARY__SESSION_STATE__STATE__STARTED:
		return "started";
	case TRIBUTARY__SESSION_STATE__STATE__STOPPING:
		return "stopping";
	case TRIBUTARY__SESSION_STATE__STATE__DISABLED:
		return s->error != NULL ? "failed" : "stopped";
	case TRIBUTARY__SESSION_STATE__STATE__CLONED:
		return "snapshot";
	case TRIBUTARY__SESSION_STATE__STATE__STATE_UNSPECIFIED:
	default:
		return "unknown";
	}
}

static enum colour
session_colour(const Tributary__SessionState *s)
{
	switch (s->state) {
	case TRIBUTARY__SESSION_STATE__STATE__STARTED:
		return COLOUR_GOOD;
	case TRIBUTARY__SESSION_STATE__STATE__STOPPING:
		return COLOUR_WARNING;
	case TRIBUTARY__SESSION_STATE__STATE__DISABLED:
		return s->error != NULL ? COLOUR_BAD : COLOUR_DIM;
	case TRIBUTARY__SESSION_STATE__STATE__CONFIGURED:
	case TRIBUTARY__SESSION_STATE__STATE__CLONED:
	case TRIBUTARY__SESSION_STATE__STATE__STATE_UNSPECIFIED:
	default:
		return COLOUR_NONE;
	}
}

static void
put_session_name(char out[TOP_CELL], const Tributary__SessionState *s)
{
	char text[LINE_BYTES];

	snprintf(text, sizeof(text), "%" PRIu64 "%s%s", s->id,
	    s->unique_session_name == NULL || s->unique_session_name[0] ==
	    '\0' ? "" : " ",
	    s->unique_session_name == NULL ? "" : s->unique_session_name);
	top_cell(out, text);
}

static void
put_session(struct top_model *m, const Tributary__SessionState *s,
    struct top_counts *next)
{
	struct top_count c = { .id = s->id, .packets = s->packets,
		.lost = s->packets_lost };
	uint64_t size = 0, used = 0, began;
	char text[HUMAN_TEXT_MAX];
	struct top_row *row;
	struct top_rates r;
	size_t i;

	for (i = 0; i < s->n_buffers; i++) {
		c.bytes += s->buffers[i]->bytes_written;
		size += s->buffers[i]->size;
		used += s->buffers[i]->used;
	}
	r = top_counts_note(&m->session_counts, next, c);
	if (r.known) {
		m->total.known = true;
		m->total.bytes += r.bytes;
		m->total.packets += r.packets;
		m->total.lost += r.lost;
	}
	if ((row = top_table_add(&m->sessions, r.bytes)) == NULL)
		return;
	put_session_name(row->cells[S_NAME], s);
	top_cell(row->cells[S_STATE], session_state(s));
	row->colours[S_STATE] = session_colour(s);
	began = s->has_started_ns ? s->started_ns : s->created_ns;
	snprintf(row->cells[S_AGE], TOP_CELL, "%s", m->now_ns < began ? "-" :
	    human_ms(text, (m->now_ns - began) / 1000000));
	put_bytes_rate(row->cells[S_RATE], r.known, r.bytes);
	put_count_rate(row->cells[S_PACKETS], r.known, r.packets);
	put_losses(row, S_LOST, c.lost, &r);
	snprintf(row->cells[S_FILL], TOP_CELL, "%" PRIu64 " %%", size == 0 ? 0 :
	    human_whole((double)used * 100 / (double)size));
	put_bytes(row->cells[S_BUFFERS], size);
	if (s->file == NULL && s->file_bytes == 0)
		strcpy(row->cells[S_FILE], "-");
	else
		put_bytes(row->cells[S_FILE], s->file_bytes);
	put_count(row->cells[S_PRODUCERS], s->producers);
	sparkline(row->cells[S_TREND], TOP_CELL, r.past, TOP_COUNTS_PAST);
}

static void
summarise(struct top_model *m, const Tributary__QuerySessionsReply *r)
{
	char used[HUMAN_TEXT_MAX], most[HUMAN_TEXT_MAX], at[32];
	char rate[TOP_CELL], packets[TOP_CELL], lost[TOP_CELL];
	time_t now = (time_t)(r->now_ns / 1000000000);
	struct tm tm;

	if (localtime_r(&now, &tm) == NULL ||
	    strftime(at, sizeof(at), "%H:%M:%S", &tm) == 0)
		at[0] = '\0';
	put_bytes_rate(rate, m->total.known, m->total.bytes);
	put_count_rate(packets, m->total.known, m->total.packets);
	put_count_rate(lost, m->total.known, m->total.lost);
	snprintf(m->summary, sizeof(m->summary), "%s  %s, %s packets/s, "
	    "%s lost/s  %" PRIu32 " session%s, buffers %s of %s", at, rate,
	    packets, lost, r->all_sessions, human_s(r->all_sessions),
	    human_bytes(used, r->buffer_bytes),
	    human_bytes(most, r->max_buffer_bytes));
	m->overload[0] = '\0';
	if (r->overload != NULL && r->overload->level > 0)
		snprintf(m->overload, sizeof(m->overload),
		    "OVERLOADED, level %" PRIu32, r->overload->level);
}

void
top_model_sessions(struct top_model *m, uint64_t now_ms,
    const Tributary__QuerySessionsReply *r)
{
	struct top_counts next;
	size_t i;

	if (!top_counts_begin(&next, r->n_sessions, now_ms))
		return;
	m->now_ns = r->now_ns;
	m->total = (struct top_rates){ .known = false };
	top_table_clear(&m->sessions);
	for (i = 0; i < r->n_sessions; i++)
		put_session(m, r->sessions[i], &next);
	/* Without sessions nothing was written: that is known, too. */
	if (r->n_sessions == 0)
		m->total.known = true;
	top_table_sort(&m->sessions);
	top_counts_keep(&m->session_counts, &next);
	m->has_sessions = true;
	summarise(m, r);
}

/* ---- machines ---- */

/* Sums the rates of a machine's producers, as far as they are known. */
static double
rate_of_producers(const struct top_model *m, uint32_t machine, bool *known)
{
	const struct top_counts *p = &m->producer_counts;
	double sum = 0, rate;
	size_t i;

	for (i = 0; i < p->n; i++) {
		rate = p->all[i].past[TOP_COUNTS_PAST - 1];
		if (p->all[i].machine == machine && rate >= 0) {
			*known = true;
			sum += rate;
		}
	}
	return sum;
}

static enum colour
machine_colour(const Tributary__MachineState *s)
{
	switch (s->state) {
	case TRIBUTARY__MACHINE_STATE__STATE__CONNECTED:
		return COLOUR_GOOD;
	case TRIBUTARY__MACHINE_STATE__STATE__CUT:
		return COLOUR_BAD;
	case TRIBUTARY__MACHINE_STATE__STATE__GONE:
		return COLOUR_DIM;
	case TRIBUTARY__MACHINE_STATE__STATE__STATE_UNSPECIFIED:
	default:
		return COLOUR_NONE;
	}
}

static void
put_machine(struct top_model *m, const Tributary__MachineState *s,
    struct top_counts *next)
{
	struct top_count c = { .id = s->id, .bytes = s->bytes_unpacked };
	struct top_row *row;
	struct top_rates r;
	size_t i;

	for (i = 0; i < s->n_losses; i++)
		c.lost += s->losses[i]->packets;
	r = top_counts_note(&m->machine_counts, next, c);
	/* Data that comes over no link is seen at its producers only. */
	if (s->bytes_unpacked == 0)
		r.bytes = rate_of_producers(m, s->id, &r.known);
	if ((row = top_table_add(&m->machines, r.bytes)) == NULL)
		return;
	top_cell(row->cells[M_NAME], s->id == 0 ? "host" : s->name);
	top_cell(row->cells[M_STATE], machine_state_text(s));
	row->colours[M_STATE] = machine_colour(s);
	put_bytes_rate(row->cells[M_RATE], r.known, r.bytes);
	put_losses(row, M_LOST, c.lost, &r);
	if (s->relay == NULL)
		strcpy(row->cells[M_WAITS], "-");
	else
		put_bytes(row->cells[M_WAITS], s->relay->memory_bytes +
		    s->relay->spool_bytes);
	put_count(row->cells[M_PRODUCERS], s->producers);
	put_count(row->cells[M_RECONNECTS], s->reconnects);
}

void
top_model_machines(struct top_model *m, uint64_t now_ms,
    const Tributary__QueryMachinesReply *r)
{
	struct top_counts next;
	size_t i;

	if (!top_counts_begin(&next, r->n_machines, now_ms))
		return;
	top_table_clear(&m->machines);
	for (i = 0; i < r->n_machines; i++)
		put_machine(m, r->machines[i], &next);
	top_table_sort(&m->machines);
	top_counts_keep(&m->machine_counts, &next);
}

/* ---- producers ---- */

/* Some processors by number; of many, how many. */
#define CPUS_SHOWN 4u

static void
put_kernel_lost(char out[TOP_CELL], const Tributary__KernelLost *lost)
{
	char count[HUMAN_TEXT_MAX], text[LINE_BYTES];
	size_t i, n;

	if (lost == NULL) {
		strcpy(out, "-");
		return;
	}
	n = (size_t)snprintf(text, sizeof(text), "%s on ",
	    human_count(count, lost->events));
	if (lost->n_cpus > CPUS_SHOWN)
		snprintf(text + n, sizeof(text) - n, "%zu CPUs", lost->n_cpus);
	else
		n += (size_t)snprintf(text + n, sizeof(text) - n, "CPU");
	for (i = 0; lost->n_cpus <= CPUS_SHOWN && i < lost->n_cpus; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		    "%s %" PRIu32, i == 0 ? "" : ",", lost->cpus[i]);
	top_cell(out, text);
}

static void
put_producer(struct top_model *m, const Tributary__ProducerState *s,
    struct top_counts *next)
{
	struct top_count c = { .id = s->id, .bytes = s->bytes,
		.packets = s->packets, .lost = s->lost,
		.machine = s->machine_id };
	struct top_rates r = top_counts_note(&m->producer_counts, next, c);
	struct top_row *row = top_table_add(&m->producers, r.bytes);

	if (row == NULL)
		return;
	top_cell(row->cells[P_NAME], s->name);
	top_cell(row->cells[P_MACHINE], s->machine_id == 0 ? "host" :
	    s->machine_name);
	snprintf(row->cells[P_PID], TOP_CELL, "%" PRId32, s->pid);
	put_bytes_rate(row->cells[P_RATE], r.known, r.bytes);
	put_count_rate(row->cells[P_PACKETS], r.known, r.packets);
	put_losses(row, P_LOST, c.lost, &r);
	put_kernel_lost(row->cells[P_KERNEL], s->kernel_lost);
	if (s->kernel_lost != NULL) {
		m->producers.n_columns = P_COLUMNS;
		row->colours[P_KERNEL] = COLOUR_WARNING;
	}
	snprintf(row->cells[P_SOURCES], TOP_CELL, "%" PRIu32 "/%" PRIu32,
	    s->instances, s->data_sources);
}

void
top_model_producers(struct top_model *m, uint64_t now_ms,
    const Tributary__QueryProducersReply *r)
{
	struct top_counts next;
	size_t i;

	top_table_clear(&m->producers);
	m->producers.n_columns = P_KERNEL;
	if (r == NULL || !top_counts_begin(&next, r->n_producers, now_ms))
		return;
	for (i = 0; i < r->n_producers; i++)
		put_producer(m, r->producers[i], &next);
	top_table_sort(&m->producers);
	top_counts_keep(&m->producer_counts, &next);
}

void
top_model_trouble(struct top_model *m, const char *why)
{
	m->trouble[0] = '\0';
	if (why != NULL)
		utf8_escape(m->trouble, sizeof(m->trouble), why,
		    strlen(why), "");
}

/* ---- the first line ---- */

/* Puts a part of a line, of which *left columns are left. */
static void
put_part(FILE *out, const struct top_model *m, enum colour c, const char *text,
    int *left)
{
	size_t n;
	int w;

	n = text_width_fit(text, *left, &w);
	*left -= w;
	if (n == 0)
		return;
	fputs(colour_begin(m->coloured, c), out);
	fwrite(text, 1, n, out);
	fputs(colour_end(m->coloured, c), out);
}

void
top_model_first_line(FILE *out, const struct top_model *m, int width)
{
	int left = width == 0 ? INT_MAX : width;

	put_part(out, m, COLOUR_HEADING, m->collector, &left);
	put_part(out, m, COLOUR_NONE, "  ", &left);
	if (m->trouble[0] != '\0') {
		put_part(out, m, COLOUR_BAD, m->trouble, &left);
	} else if (!m->has_sessions) {
		put_part(out, m, COLOUR_DIM, "asking ...", &left);
	} else if (width > 0 && m->overload[0] != '\0') {
		/* A narrow screen has no room for all of it. */
		put_part(out, m, COLOUR_BAD, m->overload, &left);
		put_part(out, m, COLOUR_NONE, "  ", &left);
		put_part(out, m, COLOUR_NONE, m->summary, &left);
	} else {
		put_part(out, m, COLOUR_NONE, m->summary, &left);
		put_part(out, m, COLOUR_NONE, m->overload[0] == '\0' ? "" :
		    "  ", &left);
		put_part(out, m, COLOUR_BAD, m->overload, &left);
	}
}

const char *
top_model_collector(const struct top_model *m)
{
	return m->collector;
}

const struct top_table *
top_model_table(const struct top_model *m, enum top_model_table which)
{
	switch (which) {
	case TOP_SESSIONS:
		return &m->sessions;
	case TOP_MACHINES:
		return &m->machines;
	case TOP_PRODUCERS:
		break;
	}
	return &m->producers;
}
