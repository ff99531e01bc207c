#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/text_parse.h"
#include "split_world.h"
#include "transport/wire/pb_reader.h"

#define PACKET (&perfetto__protos__trace_packet__descriptor)

static int
called(struct world *w)
{
	return ++w->calls == w->refuse_after ? -1 : 0;
}

static int
begin(void *arg, const struct segment_id *id, void **segment)
{
	struct world *w = arg;
	struct world_segment *g;

	assert_true(w->n < WORLD_SEGMENTS);
	assert_null(world_segment(w, id->number, id->machine));
	g = &w->segments[w->n++];
	g->number = id->number;
	g->machine = id->machine;
	g->begin_realtime_ns = id->begin_realtime_ns;
	if (id->machine_name != NULL)
		snprintf(g->name, sizeof(g->name), "%s", id->machine_name);
	pb_writer_init(&g->bytes);
	*segment = g;
	return called(w);
}

static int
put(void *arg, void *segment, const uint8_t *packets, size_t len)
{
	struct world_segment *g = segment;

	assert_false(g->ended);
	assert_true(len > 0);
	pb_put_raw(&g->bytes, packets, len);
	g->puts++;
	return called(arg);
}

static int
end(void *arg, void *segment, const struct segment_summary *of)
{
	struct world_segment *g = segment;

	assert_false(g->ended);
	assert_int_equal(of->number, g->number);
	assert_int_equal(of->machine, g->machine);
	g->ended = true;
	g->summary = *of;
	return called(arg);
}

static const struct segment_ops ops = { begin, put, end };

struct world *
world_new_with(const struct segment_options *o)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->s = segment_splitter_new(o, &ops, w);
	assert_non_null(w->s);
	pb_writer_init(&w->input);
	return w;
}

struct world *
world_new(bool by_machine)
{
	static const uint8_t uuid[SEGMENT_UUID_SIZE] = {
		[7] = 1, [15] = 2
	};

	return world_new_with(&(struct segment_options){
	    .recording_uuid = uuid,
	    .recording = "night",
	    .begin_realtime_ns = 1000,
	    .uid = 7,
	    .by_machine = by_machine,
	});
}

void
world_free(struct world *w)
{
	size_t i;

	segment_splitter_free(w->s);
	for (i = 0; i < w->n; i++)
		pb_writer_done(&w->segments[i].bytes);
	pb_writer_done(&w->input);
	free(w);
}

void
world_add(struct world *w, const char *text)
{
	uint8_t *data;
	size_t len;

	assert_int_equal(text_parse(PACKET, text, strlen(text), &data, &len,
	    NULL), 0);
	pb_put_bytes(&w->input, 1, data, len);
	assert_false(w->input.failed);
	free(data);
}

enum segment_result
world_put(struct world *w)
{
	/* Memory of its own: the splitter must not look at it afterwards. */
	uint8_t *copy = malloc(w->input.len + 1);
	enum segment_result r;

	assert_non_null(copy);
	if (w->input.len > 0)
		memcpy(copy, w->input.data, w->input.len);
	r = segment_splitter_put(w->s, copy, w->input.len);
	free(copy);
	pb_writer_reset(&w->input);
	return r;
}

void
world_take(struct world *w, const char *text)
{
	world_add(w, text);
	assert_int_equal(world_put(w), SEGMENT_OK);
}

void
world_finish(struct world *w)
{
	assert_int_equal(segment_splitter_finish(w->s), SEGMENT_OK);
}

struct world_segment *
world_segment(struct world *w, uint32_t number, uint32_t machine)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		if (w->segments[i].number == number &&
		    w->segments[i].machine == machine)
			return &w->segments[i];
	return NULL;
}

void
world_each(const uint8_t *data, size_t len,
    void (*fn)(void *arg, const Packet *p), void *arg)
{
	struct pb_reader r;
	struct pb_field f;
	Packet *p;

	PB_FOREACH(&f, &r, data, len) {
		assert_int_equal(f.number, 1);
		p = perfetto__protos__trace_packet__unpack(NULL, f.len,
		    f.data);
		assert_non_null(p);
		fn(arg, p);
		perfetto__protos__trace_packet__free_unpacked(p, NULL);
	}
	assert_false(r.bad);
}

static void
say(struct world *w, const char *fmt, ...)
{
	size_t at = strlen(w->line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->line + at, sizeof(w->line) - at, fmt, ap);
	va_end(ap);
}

static void
say_segment(struct world *w, const Perfetto__Protos__Segment *g)
{
	if (g->end == NULL) {
		say(w, "S%u", g->number);
		return;
	}
	say(w, "E%" PRIu64, g->end->packets);
	if (g->end->unanswered != 0)
		say(w, " u%u", g->end->unanswered);
	if (g->end->has_cause)
		say(w, " c%d", (int)g->end->cause);
}

static void
say_packet(void *arg, const Packet *p)
{
	struct world *w = arg;

	if (w->line[0] != '\0')
		say(w, " ");
	if (p->tributary_segment != NULL) {
		say_segment(w, p->tributary_segment);
		return;
	}
	if (p->has_timestamp)
		say(w, "%" PRIu64, p->timestamp);
	else if (p->tributary_segment_cut != NULL)
		say(w, p->tributary_segment_cut->phase ==
		    PERFETTO__PROTOS__SEGMENT_CUT__PHASE__END ?
		    "END" : "BEGIN");
	else if (p->data_case ==
	    PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_UUID)
		say(w, "U");
	else if (p->data_case ==
	    PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_STATS)
		say(w, "stats%" PRIu64, p->trace_stats->invalid_packets);
	if (p->has_previous_packet_dropped && p->previous_packet_dropped != 0)
		say(w, "!");
	if (p->has_tributary_repeated && p->tributary_repeated)
		say(w, "r");
}

const char *
world_line(struct world *w, uint32_t number, uint32_t machine)
{
	const struct world_segment *g = world_segment(w, number, machine);

	if (g == NULL)
		return "none";
	w->line[0] = '\0';
	world_each(g->bytes.data, g->bytes.len, say_packet, w);
	return w->line;
}
