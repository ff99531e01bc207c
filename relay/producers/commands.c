/*
 * Commands of the collector, translated to the ids that the producer knows.
 * Fields that hold no id are copied.
 */
#include <string.h>

#include "protos/fields.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* A message that is part of a command. */
struct part {
	const uint8_t *data;
	size_t len;
};

static void
copy_field(struct pb_writer *w, const struct pb_reader *r,
    const struct pb_field *f)
{
	pb_put_raw(w, f->start, (size_t)(r->p - f->start));
}

static uint64_t
uint_of(struct part m, uint32_t field)
{
	struct pb_reader r;
	struct pb_field f;
	uint64_t v = 0;

	PB_FOREACH(&f, &r, m.data, m.len)
		if (f.number == field && f.wire == PB_VARINT)
			v = f.value;
	return v;
}

/* ---- SetupDataSource, StartDataSource ---- */

struct setup {
	uint64_t remote;
	const uint8_t *name;
	size_t name_len;
	uint64_t session;
	uint64_t buffer;
	bool bad;
};

static void
read_config(struct setup *s, struct part config)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, config.data, config.len) {
		if (f.number == DataSourceConfig_name && f.wire == PB_BYTES) {
			s->name = f.data;
			s->name_len = f.len;
		} else if (f.number == DataSourceConfig_target_buffer) {
			s->buffer = f.value;
		} else if (f.number == DataSourceConfig_tracing_session_id) {
			s->session = f.value;
		}
	}
	s->bad |= r.bad || s->buffer > UINT16_MAX;
}

static void
read_setup(struct setup *s, struct part m)
{
	struct pb_reader r;
	struct pb_field f;

	memset(s, 0, sizeof(*s));
	PB_FOREACH(&f, &r, m.data, m.len) {
		if (f.number == SetupDataSource_new_instance_id &&
		    f.wire == PB_VARINT)
			s->remote = f.value;
		else if (f.number == SetupDataSource_config &&
		    f.wire == PB_BYTES)
			read_config(s, (struct part){ f.data, f.len });
	}
	s->bad |= r.bad;
}

static void
put_config(struct pb_writer *w, struct part config, uint16_t buffer)
{
	struct pb_reader r;
	struct pb_field f;
	size_t mark = pb_nest_begin(w, SetupDataSource_config);

	PB_FOREACH(&f, &r, config.data, config.len) {
		if (f.number == DataSourceConfig_target_buffer)
			pb_put_uint(w, DataSourceConfig_target_buffer, buffer);
		else
			copy_field(w, &r, &f);
	}
	pb_nest_end(w, mark);
}

static void
send_setup(struct local *l, uint32_t cmd, struct part m, uint64_t id,
    uint16_t buffer)
{
	struct pb_writer w;
	struct pb_reader r;
	struct pb_field f;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, cmd);
	PB_FOREACH(&f, &r, m.data, m.len) {
		if (f.number == SetupDataSource_new_instance_id)
			pb_put_uint(&w, SetupDataSource_new_instance_id, id);
		else if (f.number == SetupDataSource_config &&
		    f.wire == PB_BYTES)
			put_config(&w, (struct part){ f.data, f.len }, buffer);
		else
			copy_field(&w, &r, &f);
	}
	pb_nest_end(&w, mark);
	producer_server_send(&l->server, &w, -1);
	pb_writer_done(&w);
}

/* NULL: no such source, too many, or no memory. */
static struct local_instance *
find_or_make(struct local *l, const struct setup *s, uint16_t buffer)
{
	struct local_instance *i = local_find_remote(l, s->remote);
	struct local_source *ds;

	if (i != NULL)
		return i;
	/* The source may have been unregistered just now. */
	ds = local_find_source(l, (const char *)s->name, s->name_len);
	if (ds == NULL)
		return NULL;
	i = local_instance_new(l, s->remote, ds, s->session, buffer);
	if (i == NULL)
		local_log(l, "an instance", "too many, or no memory");
	return i;
}

/* Notes what a data source is part of, where the collector has said so. */
static void
note_origin(struct local *l, struct local_instance *i)
{
	const struct local_origin *o = &l->origin;
	struct local_buffer *b = local_find_buffer(l, i->buffer);

	if (b == NULL || o->instance != i->remote)
		return;
	i->source = o->source;
	b->has_origin = true;
	memcpy(b->config, o->config, sizeof(b->config));
	b->index = o->buffer;
}

static void
set_up(struct local *l, uint32_t cmd, struct part m)
{
	struct local_instance *i;
	struct setup s;
	uint16_t buffer = 0;

	read_setup(&s, m);
	if (s.bad || s.name == NULL) {
		local_log(l, "a command", "its data source config is bad");
		return;
	}
	if (s.buffer != 0 && (buffer = local_buffer_for(l, s.session,
	    l->owner->buffer_tag << LINK_TAG_SHIFT | (uint32_t)s.buffer)) == 0)
		local_log(l, "an instance", "too many buffers, or no memory");
	else if ((i = find_or_make(l, &s, buffer)) != NULL) {
		note_origin(l, i);
		i->runs |= cmd == GetAsyncCommandResponse_start_data_source;
		if (local_set_up_tracing(l, 0) == 0)
			send_setup(l, cmd, m, i->id, buffer);
		return;
	}
	/* Else the collector would wait for its start. */
	if (cmd == GetAsyncCommandResponse_start_data_source)
		local_put_value(l, LINK_UP_STARTED, s.remote);
}

/* ---- the others ---- */

void
local_send_stop(struct local *l, uint64_t instance)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, GetAsyncCommandResponse_stop_data_source);
	pb_put_uint(&w, StopDataSource_instance_id, instance);
	pb_nest_end(&w, mark);
	producer_server_send(&l->server, &w, -1);
	pb_writer_done(&w);
}

static void
stop(struct local *l, struct part m)
{
	uint64_t remote = uint_of(m, StopDataSource_instance_id);
	struct local_instance *i = local_find_remote(l, remote);

	if (i == NULL) {
		local_put_value(l, LINK_UP_STOPPED, remote);
		return;
	}
	if (!local_instance_advance(i, LOCAL_INSTANCE_STOPPING))
		return;
	local_send_stop(l, i->id);
	if (!i->notifies_stop) {
		/* The collector waits for no answer, but takes the chunks. */
		(void)!local_scrape(l, i->session, LOCAL_REST_COMES);
		local_instance_free(l, i);
	}
}

/* A list of instances of a command, while it is translated. */
struct named {
	struct local *l;
	struct pb_writer *w; /* Flush_data_source_ids are put there */
	bool flush;          /* leaves out those that need none */
	size_t n;            /* put */
	uint64_t session;    /* of one of them, put or not */
};

static void
name_one(struct named *n, uint64_t remote)
{
	struct local_instance *i = local_find_remote(n->l, remote);

	if (i == NULL)
		return;
	n->session = i->session;
	/* Under emulation the producer scrapes itself when it flushes. */
	if (n->flush && i->no_flush &&
	    n->l->memory != MEMORY_EMULATED)
		return;
	pb_put_uint(n->w, Flush_data_source_ids, i->id);
	n->n++;
}

/* ClearIncrementalState is read and written by the same functions. */
_Static_assert((int)Flush_data_source_ids ==
    (int)ClearIncrementalState_data_source_ids, "one field for both");

/* Field Flush_data_source_ids of a command, packed or not. */
static void
name_all(struct named *n, const struct pb_field *f)
{
	const uint8_t *p = f->data, *end;
	uint64_t id;

	if (f->wire == PB_VARINT)
		name_one(n, f->value);
	if (f->wire != PB_BYTES)
		return;
	end = p + f->len;
	while (p < end && (p = pb_varint(p, end, &id)) != NULL)
		name_one(n, id);
}

static void
flush(struct local *l, struct part m)
{
	uint64_t id = ++l->owner->last_flush;
	uint64_t remote = uint_of(m, Flush_request_id);
	struct named named = { .l = l, .flush = true };
	struct pb_writer w;
	struct pb_reader r;
	struct pb_field f;
	size_t mark;

	pb_writer_init(&w);
	named.w = &w;
	mark = pb_nest_begin(&w, GetAsyncCommandResponse_flush);
	PB_FOREACH(&f, &r, m.data, m.len) {
		if (f.number == Flush_data_source_ids)
			name_all(&named, &f);
		else if (f.number == Flush_request_id)
			pb_put_uint(&w, Flush_request_id, id);
		else
			copy_field(&w, &r, &f);
	}
	pb_nest_end(&w, mark);
	if (named.n > 0)
		producer_server_send(&l->server, &w, -1);
	pb_writer_done(&w);
	local_flush_begin(l, id, remote, named.session, named.n == 0);
}

static void
clear(struct local *l, struct part m)
{
	struct named named = { .l = l };
	struct pb_writer w;
	struct pb_reader r;
	struct pb_field f;
	size_t mark;

	pb_writer_init(&w);
	named.w = &w;
	mark = pb_nest_begin(&w,
	    GetAsyncCommandResponse_clear_incremental_state);
	PB_FOREACH(&f, &r, m.data, m.len) {
		if (f.number == Flush_data_source_ids)
			name_all(&named, &f);
		else
			copy_field(&w, &r, &f);
	}
	pb_nest_end(&w, mark);
	if (named.n > 0)
		producer_server_send(&l->server, &w, -1);
	pb_writer_done(&w);
}

void
local_note_origin(struct local *l, const uint8_t *origin, size_t len)
{
	struct local_origin o = { 0 };
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, origin, len) {
		if (f.number == LinkOrigin_session && f.wire == PB_BYTES &&
		    f.len == sizeof(o.config))
			memcpy(o.config, f.data, f.len);
		else if (f.number == LinkOrigin_instance)
			o.instance = f.value;
		else if (f.number == LinkOrigin_source)
			o.source = (uint32_t)f.value;
		else if (f.number == LinkOrigin_buffer)
			o.buffer = (uint32_t)f.value;
	}
	if (!r.bad)
		l->origin = o;
}

void
local_command(struct local *l, const uint8_t *command, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	struct part m;

	PB_FOREACH(&f, &r, command, len) {
		if (f.wire != PB_BYTES)
			continue;
		m = (struct part){ f.data, f.len };
		switch (f.number) {
		case GetAsyncCommandResponse_setup_tracing:
			(void)!local_set_up_tracing(l,
			    (uint32_t)uint_of(m,
			    SetupTracing_shared_buffer_page_size_kb));
			break;
		case GetAsyncCommandResponse_setup_data_source:
		case GetAsyncCommandResponse_start_data_source:
			set_up(l, f.number, m);
			break;
		case GetAsyncCommandResponse_stop_data_source:
			stop(l, m);
			break;
		case GetAsyncCommandResponse_flush:
			flush(l, m);
			break;
		case GetAsyncCommandResponse_clear_incremental_state:
			clear(l, m);
			break;
		default: /* may hold ids that cannot be translated */
			break;
		}
	}
	if (r.bad)
		local_log(l, "a command", "it does not parse");
}
