/*
 * Track events: the way of an event from the program's thread into its
 * sequence.
 *
 * An event without arguments whose names are known is written field by field
 * into the sequence's chunk (put_plain()); every other is made as a packet
 * (put_event()), in the chunk as well where it is small.
 */
#include "client/tracing/event/track_event.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <tributary/track_event.h>

#include "client/tracing/event/categories.h"
#include "client/tracing/event/event_state.h"
#include "client/tracing/event/process_names.h"
#include "client/tracing/packet/packet.h"
#include "client/tracing/source/registry.h"
#include "protos/fields.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Most bytes of a packet that put_plain() writes. */
#define PLAIN_MAX 64u
/* TrackEvent.Type */
#define EVENT_COUNTER 4

/* An event, which is written for each instance. */
struct event {
	const struct tributary_category *category;
	uint32_t type;
	const char *name;
	const struct tributary_arg *args;
	size_t n_args;
	/* The last of their kinds among args, or NULL. */
	const struct tributary_arg *own_name, *on, *at;
	/* Members of counters: */
	const struct tributary_track *counter;
	bool is_double;
	union {
		int64_t i;
		double d;
	} value;
};

static struct tributary_source *source;

static inline uint64_t
boottime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t
tributary_now_ns(void)
{
	return boottime_ns();
}

/* ---- In place ---- */

static inline uint8_t *
put_small(uint8_t *p, uint32_t v)
{
	while (UNLIKELY(v >= 0x80)) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static inline uint8_t *
put_time(uint8_t *p, uint64_t v)
{
	*p++ = PB_TAG(TracePacket_timestamp, PB_VARINT);
	return p + pb_encode_varint(p, v);
}

/* false: nothing was written; put_event() can. */
static inline bool
put_plain(struct sequence *q, const struct event *e, uint64_t now_ns)
{
	struct event_state *st = q->state;
	uint32_t category = 0, name = 0;
	uint8_t *start, *p, *len;

	if (e->name != NULL) {
		category = interning_find(&st->told,
		    (uintptr_t)e->category, INTERNED_CATEGORY);
		name = interning_find(&st->told, (uintptr_t)e->name,
		    INTERNED_NAME);
		if (UNLIKELY(category == 0 || name == 0))
			return false;
	}
	if (UNLIKELY((p = chunk_writer_room(&q->w, PLAIN_MAX)) == NULL ||
	    now_ns < st->last_ns))
		return false;
	start = p;
	p = put_time(p, now_ns - st->last_ns);
	st->last_ns = now_ns;
	*p++ = PB_TAG(TracePacket_sequence_flags, PB_VARINT);
	*p++ = TracePacket_SEQ_NEEDS_INCREMENTAL_STATE;
	*p++ = PB_TAG(TracePacket_track_event, PB_BYTES);
	len = p++;
	*p++ = PB_TAG(TrackEvent_type, PB_VARINT);
	*p++ = (uint8_t)e->type;
	if (e->name != NULL) {
		*p++ = PB_TAG(TrackEvent_category_iids, PB_VARINT);
		p = put_small(p, category);
		*p++ = PB_TAG(TrackEvent_name_iid, PB_VARINT);
		p = put_small(p, name);
	}
	*len = (uint8_t)(p - len - 1);
	chunk_writer_publish(&q->w, (size_t)(p - start));
	return true;
}

/* ---- By a packet ---- */

/* A packet under way, and what is to be interned with it. */
struct making {
	struct sequence *q;
	const struct event_config *config;
	struct event_state *st;
	struct tributary_packet p;
	struct tributary_packet interned; /* fields of InternedData */
	bool has_interned;
	bool failed;
};

static void
need_interned(struct making *m)
{
	if (!m->has_interned)
		packet_init(&m->interned);
	m->has_interned = true;
}

/*
 * Tells a new name with this packet, and returns its number.  field: of
 * InternedData; all its messages for names have the number as field 1, and the
 * name as field 2.
 */
static uint32_t
tell_name(struct making *m, const void *key, enum interned_kind kind,
    uint32_t field, const char *name)
{
	uint32_t iid;

	if ((iid = interning_add(&m->st->told, (uintptr_t)key, kind)) == 0) {
		m->failed = true;
		return 1;
	}
	need_interned(m);
	tributary_begin(&m->interned, field);
	tributary_put_uint(&m->interned, EventName_iid, iid);
	tributary_put_string(&m->interned, EventName_name, name);
	tributary_end(&m->interned);
	return iid;
}

static inline uint32_t
intern_name(struct making *m, const void *key, enum interned_kind kind,
    uint32_t field, const char *name)
{
	uint32_t iid = interning_find(&m->st->told, (uintptr_t)key, kind);

	return LIKELY(iid != 0) ? iid : tell_name(m, key, kind, field, name);
}

static uint32_t
intern_location(struct making *m, const struct tributary_arg *a)
{
	/* Large factors: near addresses and lines do not make the same key. */
	uint64_t key = ((uintptr_t)a->name * 0x9e3779b97f4a7c15u +
	    (uintptr_t)a->value.p) * 0xff51afd7ed558ccdu + a->number;
	uint32_t iid = interning_find(&m->st->told, key, INTERNED_LOCATION);

	if (iid != 0)
		return iid;
	iid = interning_add(&m->st->told, key, INTERNED_LOCATION);
	if (iid == 0) {
		m->failed = true;
		return 1;
	}
	need_interned(m);
	tributary_begin(&m->interned, InternedData_source_locations);
	tributary_put_uint(&m->interned, SourceLocation_iid, iid);
	tributary_put_string(&m->interned, SourceLocation_file_name, a->name);
	tributary_put_string(&m->interned, SourceLocation_function_name,
	    a->value.p);
	tributary_put_uint(&m->interned, SourceLocation_line_number, a->number);
	tributary_end(&m->interned);
	return iid;
}

/* A text that is told once only, under a number of its own. */
static uint32_t
tell_log_body(struct making *m, const char *text, size_t len)
{
	uint32_t iid = ++m->st->told.last[INTERNED_LOG_BODY];

	need_interned(m);
	tributary_begin(&m->interned, InternedData_log_message_body);
	tributary_put_uint(&m->interned, LogMessageBody_iid, iid);
	tributary_put_bytes(&m->interned, LogMessageBody_body, text, len);
	tributary_end(&m->interned);
	return iid;
}

static void
put_value(struct tributary_packet *p, const struct tributary_arg *a)
{
	switch ((enum tributary_arg_kind)a->kind) {
	case TRIBUTARY_ARG_INT:
		packet_put_uint(p, DebugAnnotation_int_value, a->value.u);
		break;
	case TRIBUTARY_ARG_UINT:
		packet_put_uint(p, DebugAnnotation_uint_value, a->value.u);
		break;
	case TRIBUTARY_ARG_BOOL:
		packet_put_uint(p, DebugAnnotation_bool_value, a->value.u);
		break;
	case TRIBUTARY_ARG_DOUBLE:
		packet_put_fixed(p, DebugAnnotation_double_value, PB_FIXED64,
		    &a->value.d, sizeof(a->value.d));
		break;
	case TRIBUTARY_ARG_POINTER:
		packet_put_uint(p, DebugAnnotation_pointer_value,
		    a->value.u);
		break;
	default:
		packet_put_bytes(p, DebugAnnotation_string_value,
		    a->value.p, a->len);
		break;
	}
}

/* Dictionaries and arrays that are open, and the fields of their members. */
struct nesting {
	uint32_t fields[PACKET_DEPTH_MAX];
	unsigned depth;
};

static void
put_annotation(struct making *m, struct nesting *n,
    const struct tributary_arg *a)
{
	uint32_t field = n->depth > 0 ? n->fields[n->depth - 1] :
	    TrackEvent_debug_annotations;

	packet_begin(&m->p, field);
	if (a->name != NULL)
		packet_put_uint(&m->p, DebugAnnotation_name_iid,
		    intern_name(m, a->name, INTERNED_ARG_NAME,
			InternedData_debug_annotation_names, a->name));
	if (a->kind != TRIBUTARY_ARG_DICT && a->kind != TRIBUTARY_ARG_ARRAY) {
		put_value(&m->p, a);
		packet_end(&m->p);
	} else if (n->depth < PACKET_DEPTH_MAX) {
		n->fields[n->depth++] = a->kind == TRIBUTARY_ARG_DICT ?
		    DebugAnnotation_dict_entries : DebugAnnotation_array_values;
	} else {
		m->failed = true;
	}
}

static void
put_log(struct making *m, const struct tributary_arg *a, uint32_t location)
{
	packet_begin(&m->p, TrackEvent_log_message);
	if (location != 0)
		packet_put_uint(&m->p, LogMessage_source_location_iid,
		    location);
	packet_put_uint(&m->p, LogMessage_body_iid,
	    tell_log_body(m, a->value.p, a->len));
	packet_put_uint(&m->p, LogMessage_prio, a->number);
	packet_end(&m->p);
}

/* Fields of TrackEvent that are no annotations. */
static void
put_field(struct making *m, const struct tributary_arg *a, uint32_t *location)
{
	switch ((enum tributary_arg_kind)a->kind) {
	case TRIBUTARY_ARG_FLOW:
		tributary_put_fixed64(&m->p, TrackEvent_flow_ids, a->value.u);
		break;
	case TRIBUTARY_ARG_FLOW_END:
		tributary_put_fixed64(&m->p, TrackEvent_terminating_flow_ids,
		    a->value.u);
		break;
	case TRIBUTARY_ARG_CORRELATION:
		packet_put_uint(&m->p, TrackEvent_correlation_id,
		    a->value.u);
		break;
	case TRIBUTARY_ARG_CORRELATION_STRING:
		packet_put_bytes(&m->p, TrackEvent_correlation_id_str,
		    a->value.p, a->len);
		break;
	case TRIBUTARY_ARG_LOCATION:
		*location = intern_location(m, a);
		packet_put_uint(&m->p, TrackEvent_source_location_iid,
		    *location);
		break;
	case TRIBUTARY_ARG_LOG:
		put_log(m, a, *location);
		break;
	case TRIBUTARY_ARG_ENCODED:
		tributary_put_encoded(&m->p, a->value.p, a->len);
		break;
	default:
		break; /* ON, AT, NAME: head_of() */
	}
}

static void
put_args(struct making *m, const struct event *e)
{
	struct nesting n; /* not set to 0 as a whole */
	uint32_t location = 0;
	size_t i;

	n.depth = 0;
	for (i = 0; i < e->n_args; i++) {
		if (e->args[i].kind == TRIBUTARY_ARG_END) {
			if (n.depth > 0 && n.depth-- > 0)
				packet_end(&m->p);
		} else if (e->args[i].kind > TRIBUTARY_ARG_END) {
			if (n.depth == 0)
				put_field(m, &e->args[i], &location);
		} else if (!m->config->no_annotations) {
			put_annotation(m, &n, &e->args[i]);
		}
	}
	for (; n.depth > 0; n.depth--)
		packet_end(&m->p);
}

/* The track that the event names; NULL: the thread's. */
static const struct tributary_track *
track_of(const struct event *e)
{
	if (e->counter != NULL)
		return e->counter;
	return e->on != NULL ? e->on->value.p : NULL;
}

static void
put_name(struct making *m, const struct event *e)
{
	const struct tributary_arg *own = e->own_name;

	if (own != NULL && m->config->no_dynamic_names)
		tributary_put_string(&m->p, TrackEvent_name, "FILTERED");
	else if (own != NULL)
		packet_put_bytes(&m->p, TrackEvent_name, own->value.p,
		    own->len);
	else if (e->name != NULL)
		packet_put_uint(&m->p, TrackEvent_name_iid,
		    intern_name(m, e->name, INTERNED_NAME,
			InternedData_event_names, e->name));
}

static void
put_counter_value(struct making *m, const struct event *e)
{
	if (e->is_double)
		tributary_put_double(&m->p, TrackEvent_double_counter_value,
		    e->value.d);
	else
		tributary_put_int(&m->p, TrackEvent_counter_value, e->value.i);
}

/* The thread's processor time since it was told last. */
static void
put_thread_time(struct making *m, uint64_t now_ns)
{
	struct event_state *st = m->st;
	uint64_t t, units;

	if (st->thread_time_at_ns != 0 && now_ns - st->thread_time_at_ns <
	    m->config->thread_time_period_ns)
		return;
	st->thread_time_at_ns = now_ns;
	t = thread_time_ns();
	units = (t - st->thread_time_ns) / m->config->unit_ns;
	st->thread_time_ns += units * m->config->unit_ns;
	tributary_put_uint(&m->p, TrackEvent_extra_counter_values, units);
}

static void
put_track_event(struct making *m, const struct event *e, uint64_t now_ns)
{
	const struct tributary_track *track = track_of(e);

	packet_begin(&m->p, TracePacket_track_event);
	packet_put_uint(&m->p, TrackEvent_type, e->type);
	if (e->type != TRIBUTARY_SLICE_END)
		packet_put_uint(&m->p, TrackEvent_category_iids,
		    intern_name(m, e->category, INTERNED_CATEGORY,
			InternedData_event_categories, e->category->name));
	put_name(m, e);
	if (track != NULL)
		packet_put_uint(&m->p, TrackEvent_track_uuid, track->uuid);
	else if (m->config->thread_time)
		put_thread_time(m, now_ns);
	if (e->counter != NULL)
		put_counter_value(m, e);
	put_args(m, e);
	packet_end(&m->p);
}

static void
put_packet_time(struct making *m, const struct event *e, uint64_t now_ns)
{
	if (e->at == NULL) {
		event_state_put_time(&m->p, m->config, m->st, now_ns);
		return;
	}
	packet_put_uint(&m->p, TracePacket_timestamp, e->at->value.u);
	packet_put_uint(&m->p, TracePacket_timestamp_clock_id, e->at->number);
}

/* Adds what is new to the packet. */
static void
put_interned(struct making *m)
{
	packet_put_bytes(&m->p, TracePacket_interned_data, m->interned.data,
	    packet_len(&m->interned));
	m->failed = m->failed || m->interned.failed;
	packet_done(&m->interned);
}

/* Hands the packet to the sequence; room: where it was begun.  false: dropped. */
static bool
finish(struct making *m, const uint8_t *room)
{
	struct chunk_writer *w = &m->q->w;
	bool ok = true;

	if (UNLIKELY(m->failed || m->p.failed)) {
		chunk_writer_count_drop(w, 1);
		ok = false;
	} else if (LIKELY(packet_is_in(&m->p, room))) {
		chunk_writer_publish(w, packet_len(&m->p));
	} else {
		ok = chunk_writer_put(w, m->p.data, packet_len(&m->p));
	}
	packet_done(&m->p);
	return ok;
}

/* false: dropped. */
static bool
put_event(struct sequence *q, const struct event *e, uint64_t now_ns)
{
	const struct tributary_track *track = track_of(e);
	struct making m; /* large: not set to 0 as a whole */
	uint8_t *room;

	m.q = q;
	m.config = q->instance->context;
	m.st = q->state;
	m.has_interned = m.failed = false;
	if (UNLIKELY(interning_is_full(&m.st->told)) &&
	    !event_state_begin(q, now_ns))
		return false;
	if (track != NULL && !event_state_tell_track(q, track, now_ns))
		return false;
	room = chunk_writer_room(&q->w, CHUNK_WRITER_SMALL_MAX);
	if (LIKELY(room != NULL))
		packet_init_in(&m.p, room, CHUNK_WRITER_SMALL_MAX);
	else
		packet_init(&m.p);
	put_packet_time(&m, e, now_ns);
	packet_put_uint(&m.p, TracePacket_sequence_flags,
	    TracePacket_SEQ_NEEDS_INCREMENTAL_STATE);
	put_track_event(&m, e, now_ns);
	if (m.has_interned)
		put_interned(&m);
	return finish(&m, room);
}

/* ---- To each instance ---- */

static inline void
write_event(struct sequence *q, const struct event *e, uint64_t now_ns)
{
	const struct event_config *config = q->instance->context;
	bool ok = true;

	if (UNLIKELY(sequence_is_stale(q)))
		ok = event_state_begin(q, now_ns);
	if (LIKELY(ok && e->n_args == 0 && e->counter == NULL &&
	    config->plain) && put_plain(q, e, now_ns))
		return;
	if (!ok || !put_event(q, e, now_ns))
		/* Names told with it are lost: the state begins anew. */
		q->generation--;
}

static void
write_to(const struct event *e, uint64_t instances)
{
	uint64_t now_ns;
	struct sequence *q;
	unsigned slot;

	if (UNLIKELY(instances & REGISTRY_RESTART)) {
		registry_restart();
		return;
	}
	now_ns = boottime_ns();
	for (; instances != 0; instances &= instances - 1) {
		slot = (unsigned)__builtin_ctzll(instances);
		if (UNLIKELY((q = sequence_enter(source, slot)) == NULL))
			continue;
		write_event(q, e, now_ns);
		sequence_leave(q);
	}
}

/* One look at the arguments for what is not written in their order. */
static inline void
note_args(struct event *e)
{
	const struct tributary_arg *a;

	for (a = e->args; a < e->args + e->n_args; a++) {
		if (a->kind == TRIBUTARY_ARG_NAME)
			e->own_name = a;
		else if (a->kind == TRIBUTARY_ARG_ON)
			e->on = a;
		else if (a->kind == TRIBUTARY_ARG_AT)
			e->at = a;
	}
}

static inline uint64_t
instances_of(const struct tributary_category *c)
{
	return __atomic_load_n(&c->enabled, __ATOMIC_RELAXED);
}

void
tributary_event(const struct tributary_category *c,
    enum tributary_event_type type, const char *name)
{
	struct event e = { .category = c, .type = (uint32_t)type,
	    .name = name };

	write_to(&e, instances_of(c));
}

void
tributary_slice_end(const struct tributary_slice *s)
{
	struct event e = { .category = s->category,
	    .type = TRIBUTARY_SLICE_END };

	write_to(&e, s->instances & instances_of(s->category));
}

void
tributary_event_args(const struct tributary_category *c,
    enum tributary_event_type type, const char *name,
    const struct tributary_arg *args, size_t n)
{
	struct event e = { .category = c, .type = (uint32_t)type, .name = name,
	    .args = args, .n_args = n };

	note_args(&e);
	write_to(&e, instances_of(c));
}

void
tributary_count(const struct tributary_category *c,
    const struct tributary_track *track, int64_t value,
    const struct tributary_arg *args, size_t n)
{
	struct event e = { .category = c, .type = EVENT_COUNTER,
	    .counter = track, .args = args, .n_args = n };

	e.value.i = value;
	note_args(&e);
	write_to(&e, instances_of(c));
}

void
tributary_count_double(const struct tributary_category *c,
    const struct tributary_track *track, double value,
    const struct tributary_arg *args, size_t n)
{
	struct event e = { .category = c, .type = EVENT_COUNTER,
	    .counter = track, .is_double = true, .args = args, .n_args = n };

	e.value.d = value;
	note_args(&e);
	write_to(&e, instances_of(c));
}

/* ---- The data source ---- */

static bool
on_setup(struct tributary_instance *i, const void *config, size_t len,
    void *arg, void **context)
{
	return (*context = event_state_config_new(config, len)) != NULL;
}

static void
on_start(struct tributary_instance *i, void *context)
{
	const struct event_config *c = context;

	categories_start(i->slot, c->encoded, c->len);
}

static bool
on_stop(struct tributary_instance *i, void *context)
{
	categories_stop(i->slot);
	return true;
}

static void
on_destroy(struct tributary_instance *i, void *context)
{
	/* Also of an instance that was never stopped. */
	categories_stop(i->slot);
	event_state_config_free(context);
}

static const struct tributary_source_ops ops = {
	.size = sizeof(ops),
	.setup = on_setup,
	.start = on_start,
	.stop = on_stop,
	.destroy = on_destroy,
};

/* Programs without categories have no track events to offer. */
static int
register_source(void)
{
	struct tributary_source_options o = { .size = sizeof(o),
	    .name = "track_event" };

	if (source == NULL && categories_exist() &&
	    (source = registry_add(&o, &ops)) == NULL)
		return -1;
	return 0;
}

/* Called by the dynamic linker as well, which loads one library at a time. */
static void
describe(void)
{
	size_t len;
	uint8_t *data;

	if (register_source() == 0 && source != NULL &&
	    (data = categories_descriptor(&len)) != NULL)
		registry_describe(source, data, len);
}

/* Addresses may come to be those of other literals. */
static void
forget_names(void)
{
	registry_begin_anew(source);
	describe();
}

int
track_event_init(void)
{
	static bool begun;

	if (begun)
		return 0;
	if (register_source() != 0)
		return -1;
	begun = true;
	categories_set_hooks(describe, forget_names);
	describe();
	return 0;
}

void
track_event_after_fork(bool restart)
{
	event_tracks_after_fork();
	categories_after_fork(restart ? REGISTRY_RESTART : 0);
}

void
track_event_forget_restart(void)
{
	categories_forget(REGISTRY_RESTART);
}

void
tributary_set_thread_name(const char *name)
{
	thread_set_name(name);
	if (source != NULL)
		sequence_begin_anew(source);
}
