#include "client/show/machines_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "client/show/quota_text.h"
#include "client/text/text_cell.h"
#include "client/text/text_width.h"
#include "client/text/time_text.h"
#include "protos/control.pb-c.h"
#include "protos/json_out.h"
#include "protos/link.pb-c.h"
#include "protos/system_info.pb-c.h"
#include "transport/base/human_numbers.h"
#include "transport/base/machine_word.h"
#include "transport/link/link_wire.h"

typedef Tributary__MachineState machine_state;
typedef Tributary__QueryMachinesReply machines_reply;

#define TEXT_MAX 64

static bool
is_asked_for(const machine_state *m, const struct machines_words *w)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (machine_word_means(w->words[i], m->id, m->name))
			return true;
	return w->n == 0;
}

static const char *
name_of(const machine_state *m, char out[TEXT_CELL_MAX])
{
	if (m->id == 0)
		return MACHINE_WORD_HOST;
	return text_cell_plain(m->name, out);
}

const char *
machine_state_text(const machine_state *m)
{
	switch (m->state) {
	case TRIBUTARY__MACHINE_STATE__STATE__CONNECTED:
		return "connected";
	case TRIBUTARY__MACHINE_STATE__STATE__CUT:
		return "cut off";
	case TRIBUTARY__MACHINE_STATE__STATE__GONE:
		return "gone";
	default:
		return "unknown";
	}
}

static const char *
reach_text(const machine_state *m)
{
	switch (m->reach) {
	case TRIBUTARY__MACHINE_STATE__REACH__HOST:
		return "this collector";
	case TRIBUTARY__MACHINE_STATE__REACH__LINK:
		return "link";
	case TRIBUTARY__MACHINE_STATE__REACH__CLASSIC:
		return "classic relay";
	case TRIBUTARY__MACHINE_STATE__REACH__DIRECT:
		return "direct";
	default:
		return "unknown";
	}
}

/* Since when it is what it is; 0: not told. */
static uint64_t
since_ns(const machine_state *m)
{
	if (m->state == TRIBUTARY__MACHINE_STATE__STATE__CONNECTED)
		return m->connected_since_ns;
	return m->cut_since_ns;
}

/* "12 us", "3.4 ms", "-5.001 s". */
static const char *
distance(char out[TEXT_MAX], int64_t ns)
{
	double v = (double)ns;

	if (fabs(v) < 1e6)
		snprintf(out, TEXT_MAX, "%.1f us", v / 1e3);
	else if (fabs(v) < 1e9)
		snprintf(out, TEXT_MAX, "%.3f ms", v / 1e6);
	else
		snprintf(out, TEXT_MAX, "%.6f s", v / 1e9);
	return out;
}

static uint64_t
lost(const machine_state *m)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < m->n_losses; i++)
		n += m->losses[i]->packets;
	return n;
}

static bool
lost_anything(const machine_state *m)
{
	return m->n_losses > 0;
}

/* NULL: not told, or no memory. */
static Perfetto__Protos__SystemInfo *
system_of(const machine_state *m)
{
	return m->system_info.len == 0 ? NULL :
	    perfetto__protos__system_info__unpack(NULL, m->system_info.len,
	    m->system_info.data);
}

/* ---- a line each ---- */

static void
print_line(FILE *out, const machine_state *m, uint64_t now, int name_width,
    int address_width)
{
	char name[TEXT_CELL_MAX], address[TEXT_CELL_MAX];
	char since[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];
	char waits[HUMAN_TEXT_MAX], count[HUMAN_TEXT_MAX], clock[TEXT_MAX];

	text_cell_put(out, name_of(m, name), name_width);
	fprintf(out, "%-10" PRIu32 "  %-9s  ", m->id, machine_state_text(m));
	text_cell_put(out, text_cell_plain(m->address, address), address_width);
	fprintf(out, "%-12s  %9" PRIu32 "  %7" PRIu32 "  ",
	    time_text_ago(since, since_ns(m), now), m->producers,
	    m->data_sources);
	fprintf(out, "%10s  ", m->bytes_unpacked == 0 ? "-" :
	    human_bytes(bytes, m->bytes_unpacked));
	fprintf(out, "%10s  ", m->relay == NULL ? "-" :
	    human_bytes(waits, m->relay->memory_bytes +
	    m->relay->spool_bytes));
	fprintf(out, "%8s  ", !lost_anything(m) ? "0" : lost(m) == 0 ?
	    "unknown" : human_count(count, lost(m)));
	fprintf(out, "%s\n", !m->has_clock_offset_ns ? "-" :
	    distance(clock, m->clock_offset_ns));
}

/* Columns of the cells that are as wide as their text. */
struct widths {
	int collector; /* 0: there is no such column */
	int name;
	int address;
};

static void
widen(struct widths *w, const struct machines_list *l,
    const machine_state *m)
{
	char text[TEXT_CELL_MAX];

	if (l->collector != NULL)
		w->collector = text_cell_widen(w->collector, l->collector);
	w->name = text_cell_widen(w->name, name_of(m, text));
	w->address = text_cell_widen(w->address,
	    text_cell_plain(m->address, text));
}

static size_t
print_table(FILE *out, const struct machines_list *lists, size_t n,
    const struct machines_words *words)
{
	struct widths w = { n > 0 && lists[0].collector != NULL ?
	    text_width("COLLECTOR") : 0, 4, 7 };
	const machines_reply *r;
	size_t i, j, printed = 0;

	for (i = 0; i < n; i++) {
		r = lists[i].reply;
		for (j = 0; j < r->n_machines; j++) {
			if (!is_asked_for(r->machines[j], words))
				continue;
			printed++;
			widen(&w, &lists[i], r->machines[j]);
		}
	}
	if (printed == 0)
		return 0;
	if (w.collector > 0)
		text_cell_put(out, "COLLECTOR", w.collector);
	fprintf(out, "%-*s  %-10s  %-9s  %-*s  %-12s  %9s  %7s  %10s  %10s  "
	    "%8s  %s\n", w.name, "NAME", "ID", "STATE", w.address,
	    "ADDRESS", "SINCE", "PRODUCERS", "SOURCES", "DATA", "WAITS THERE",
	    "LOST", "CLOCK");
	for (i = 0; i < n; i++) {
		r = lists[i].reply;
		for (j = 0; j < r->n_machines; j++) {
			if (!is_asked_for(r->machines[j], words))
				continue;
			if (w.collector > 0)
				text_cell_put(out, lists[i].collector,
				    w.collector);
			print_line(out, r->machines[j], r->now_ns, w.name,
			    w.address);
		}
	}
	return printed;
}

/* ---- everything, a block each ---- */

static void
print_system(FILE *out, const machine_state *m)
{
	Perfetto__Protos__SystemInfo *info;
	char a[TEXT_CELL_MAX], b[TEXT_CELL_MAX], c[TEXT_CELL_MAX];
	char size[HUMAN_TEXT_MAX];

	if ((info = system_of(m)) == NULL)
		return;
	if (info->utsname != NULL)
		fprintf(out, "  system         %s %s %s\n",
		    text_cell_plain(info->utsname->sysname, a),
		    text_cell_plain(info->utsname->release, b),
		    text_cell_plain(info->utsname->machine, c));
	if (info->num_cpus != 0 || info->system_ram_bytes != 0)
		fprintf(out, "  hardware       %" PRIu32 " CPU%s, %s of "
		    "memory\n", info->num_cpus, human_s(info->num_cpus),
		    info->system_ram_bytes == 0 ? "unknown size" :
		    human_bytes(size, info->system_ram_bytes));
	perfetto__protos__system_info__free_unpacked(info, NULL);
}

static void
print_clock(FILE *out, const machine_state *m, uint64_t now)
{
	char offset[TEXT_MAX], off[TEXT_MAX], trip[TEXT_MAX];
	char then[HUMAN_TEXT_MAX];

	if (m->id == 0)
		return;
	if (!m->has_clock_offset_ns) {
		fprintf(out, "  clock          not measured\n");
		return;
	}
	fprintf(out, "  clock          %s ahead of the collector's, +- %s; round "
	    "trip %s; measured %s ago\n", distance(offset, m->clock_offset_ns),
	    distance(off, (int64_t)m->clock_uncertainty_ns),
	    distance(trip, (int64_t)m->round_trip_ns),
	    time_text_ago(then, m->clock_measured_ns, now));
}

static void
print_relay(FILE *out, const machine_state *m)
{
	const Tributary__LinkStatus *s = m->relay;
	char a[HUMAN_TEXT_MAX], b[HUMAN_TEXT_MAX];

	if (s == NULL)
		return;
	fprintf(out, "  relay memory   %s of %s\n",
	    human_bytes(a, s->memory_bytes), human_bytes(b, s->memory_limit));
	if (s->spool_limit != 0)
		fprintf(out, "  relay spool    %s of %s\n",
		    human_bytes(a, s->spool_bytes),
		    human_bytes(b, s->spool_limit));
	if (s->oldest_ms != 0)
		fprintf(out, "  oldest there   %s\n", human_ms(a, s->oldest_ms));
}

static void
print_losses(FILE *out, const machine_state *m)
{
	char packets[HUMAN_TEXT_MAX], chunks[HUMAN_TEXT_MAX];
	char bytes[HUMAN_TEXT_MAX];
	size_t i;

	if (!lost_anything(m))
		fprintf(out, "  losses         none\n");
	for (i = 0; i < m->n_losses; i++) {
		const Tributary__LossCount *l = m->losses[i];

		fprintf(out, "  lost           %s: ",
		    link_loss_text((uint32_t)l->cause));
		if (l->packets == 0 && l->chunks == 0 && l->bytes == 0)
			fprintf(out, "an unknown number of packets\n");
		else
			fprintf(out, "%s packets in %s chunks (%s)\n",
			    human_count(packets, l->packets),
			    human_count(chunks, l->chunks),
			    human_bytes(bytes, l->bytes));
	}
}

/* word: NULL: nothing is printed. */
static void
print_word(FILE *out, const char *what, const char *word)
{
	char text[TEXT_CELL_MAX];

	if (word != NULL)
		fprintf(out, "  %-14s %s\n", what, text_cell_plain(word, text));
}

static void
print_block(FILE *out, const char *collector, const machine_state *m,
    uint64_t now)
{
	char name[TEXT_CELL_MAX], time[HUMAN_TEXT_MAX];
	char a[HUMAN_TEXT_MAX], b[HUMAN_TEXT_MAX];

	fprintf(out, "%s\n", name_of(m, name));
	print_word(out, "collector", collector);
	fprintf(out, "  id             %" PRIu32 "\n", m->id);
	if (m->id == 0)
		print_word(out, "own name", m->name);
	fprintf(out, "  state          %s", machine_state_text(m));
	if (since_ns(m) != 0)
		fprintf(out, " since %s (%s)", time_text_at(time, since_ns(m)),
		    time_text_ago(a, since_ns(m), now));
	fprintf(out, "\n  reached by     %s\n", reach_text(m));
	print_word(out, "address", m->address);
	print_word(out, "known by", m->authenticated);
	print_word(out, "software", m->software);
	print_system(out, m);
	if (m->first_seen_ns != 0)
		fprintf(out, "  first seen     %s\n", time_text_at(time,
		    m->first_seen_ns));
	if (m->reconnects != 0)
		fprintf(out, "  reconnects     %" PRIu64 "\n", m->reconnects);
	fprintf(out, "  producers      %" PRIu32 " with %" PRIu32 " data "
	    "source%s\n", m->producers, m->data_sources,
	    human_s(m->data_sources));
	if (m->bytes_unpacked != 0)
		fprintf(out, "  data           %s (%s as it came)\n",
		    human_bytes(a, m->bytes_unpacked),
		    human_bytes(b, m->bytes_received));
	if (m->bytes_waiting != 0)
		fprintf(out, "  waits here     %s, for a file to be written or its quota\n",
		    human_bytes(a, m->bytes_waiting));
	print_relay(out, m);
	print_clock(out, m, now);
	print_losses(out, m);
	if (m->quota != NULL)
		quota_text_print(out, m->quota);
}

/* ---- JSON ---- */

static void
json_system(struct json_out *j, const machine_state *m)
{
	Perfetto__Protos__SystemInfo *info;

	if ((info = system_of(m)) == NULL)
		return;
	json_object(j, "system");
	json_uint(j, "cpus", info->num_cpus);
	json_uint(j, "memory_bytes", info->system_ram_bytes);
	if (info->utsname != NULL) {
		json_string(j, "sysname", info->utsname->sysname);
		json_string(j, "release", info->utsname->release);
		json_string(j, "machine", info->utsname->machine);
	}
	json_object_end(j);
	perfetto__protos__system_info__free_unpacked(info, NULL);
}

static void
json_relay(struct json_out *j, const Tributary__LinkStatus *s)
{
	json_object(j, "relay");
	json_uint(j, "memory_bytes", s->memory_bytes);
	json_uint(j, "memory_limit", s->memory_limit);
	json_uint(j, "spool_bytes", s->spool_bytes);
	json_uint(j, "spool_limit", s->spool_limit);
	json_uint(j, "oldest_ms", s->oldest_ms);
	json_uint(j, "reconnects", s->reconnects);
	json_uint(j, "packets_lost", s->packets_lost);
	json_object_end(j);
}

static void
json_clock(struct json_out *j, const machine_state *m)
{
	json_object(j, "clock");
	json_int(j, "offset_ns", m->clock_offset_ns);
	json_uint(j, "uncertainty_ns", m->clock_uncertainty_ns);
	json_uint(j, "round_trip_ns", m->round_trip_ns);
	json_uint(j, "measured_ns", m->clock_measured_ns);
	json_object_end(j);
}

static void
json_losses(struct json_out *j, const machine_state *m)
{
	size_t i;

	json_array(j, "losses");
	for (i = 0; i < m->n_losses; i++) {
		json_object(j, NULL);
		json_string(j, "cause",
		    link_loss_text((uint32_t)m->losses[i]->cause));
		json_uint(j, "packets", m->losses[i]->packets);
		json_uint(j, "chunks", m->losses[i]->chunks);
		json_uint(j, "bytes", m->losses[i]->bytes);
		json_object_end(j);
	}
	json_array_end(j);
}

static void
json_machine(struct json_out *j, const char *collector,
    const machine_state *m)
{
	json_object(j, NULL);
	json_string(j, "collector", collector);
	json_uint(j, "id", m->id);
	json_string(j, "name", m->id == 0 ? MACHINE_WORD_HOST : m->name);
	json_string(j, "state", machine_state_text(m));
	json_string(j, "reached_by", reach_text(m));
	if (m->id == 0)
		json_string(j, "own_name", m->name);
	json_string(j, "address", m->address);
	json_string(j, "known_by", m->authenticated);
	json_string(j, "software", m->software);
	json_system(j, m);
	json_uint(j, "first_seen_ns", m->first_seen_ns);
	json_uint(j, "connected_since_ns", m->connected_since_ns);
	json_uint(j, "cut_since_ns", m->cut_since_ns);
	json_uint(j, "reconnects", m->reconnects);
	if (m->has_clock_offset_ns)
		json_clock(j, m);
	json_uint(j, "producers", m->producers);
	json_uint(j, "data_sources", m->data_sources);
	json_uint(j, "bytes_received", m->bytes_received);
	json_uint(j, "bytes_unpacked", m->bytes_unpacked);
	json_uint(j, "bytes_waiting", m->bytes_waiting);
	if (m->relay != NULL)
		json_relay(j, m->relay);
	json_losses(j, m);
	if (m->quota != NULL)
		quota_text_json(j, m->quota);
	json_object_end(j);
}

size_t
machines_print(FILE *out, const struct machines_list *lists, size_t n,
    const struct machines_words *words, enum list_form form)
{
	struct json_out j = { .out = out, .row = "\n  " };
	const machines_reply *r;
	size_t i, k, printed = 0;

	if (form == LIST_TABLE)
		return print_table(out, lists, n, words);
	if (form == LIST_JSON)
		json_array(&j, NULL);
	for (i = 0; i < n; i++) {
		r = lists[i].reply;
		for (k = 0; k < r->n_machines; k++) {
			if (!is_asked_for(r->machines[k], words))
				continue;
			if (form == LIST_JSON)
				json_machine(&j, lists[i].collector,
				    r->machines[k]);
			else
				print_block(out, lists[i].collector,
				    r->machines[k], r->now_ns);
			printed++;
		}
	}
	if (form == LIST_JSON) {
		json_array_end(&j);
		fputc('\n', out);
	}
	return printed;
}
