#include "client/inspect/report/session_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/packet_facts.h"
#include "protos/fields.h"
#include "protos/system_info.pb-c.h"
#include "protos/trace_config.pb-c.h"
#include "transport/wire/pb_reader.h"

void
session_log_done(struct session_log *l)
{
	struct session_machine *m;
	struct hash_cursor at;

	if (l->config != NULL)
		perfetto__protos__trace_config__free_unpacked(l->config, NULL);
	free(l->slow);
	free(l->triggers);
	HASH_MAP_FOREACH(m, &l->machines, &at, link)
		free(m);
	hash_map_done(&l->machines);
	session_programs_done(&l->programs);
	memset(l, 0, sizeof(*l));
}

static void
copy_name(char out[SESSION_LOG_NAME], const struct pb_field *f)
{
	size_t len = f->len < SESSION_LOG_NAME - 1 ? f->len :
	    SESSION_LOG_NAME - 1;

	if (f->wire != PB_BYTES)
		return;
	memcpy(out, f->data, len);
	out[len] = '\0';
}

static void
take_config(struct session_log *l, const struct pb_field *config)
{
	l->n_configs++;
	if (l->config != NULL)
		return;
	l->config = perfetto__protos__trace_config__unpack(NULL, config->len,
	    config->data);
}

static void
take_uuid(struct session_log *l, const struct pb_field *uuid)
{
	uint64_t msb = 0, lsb = 0;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, uuid->data, uuid->len) {
		if (f.number == TraceUuid_msb)
			msb = f.value;
		else if (f.number == TraceUuid_lsb)
			lsb = f.value;
	}
	if (!l->has_uuid) {
		l->uuid_msb = msb;
		l->uuid_lsb = lsb;
	}
	if (!l->has_uuid || msb != l->uuid_msb || lsb != l->uuid_lsb)
		l->n_uuids++;
	l->has_uuid = true;
}

/* An entry behind the last of a list of at most max; NULL: counted. */
static void *
append(struct session_log *l, void **list, size_t n, size_t max, size_t size)
{
	if (n == max) {
		l->overflow++;
		return NULL;
	}
	if (*list == NULL && (*list = calloc(max, size)) == NULL) {
		l->no_memory = true;
		return NULL;
	}
	return (char *)*list + n * size;
}

static void
take_slow_source(struct session_log *l, const struct pb_field *source,
    enum session_event event)
{
	struct session_slow one = { .starts = 0 }, *s;
	struct pb_reader r;
	struct pb_field f;
	size_t i;

	PB_FOREACH(&f, &r, source->data, source->len) {
		if (f.number == DataSources_DataSource_producer_name)
			copy_name(one.producer, &f);
		else if (f.number == DataSources_DataSource_data_source_name)
			copy_name(one.data_source, &f);
	}
	for (i = 0; i < l->n_slow; i++) {
		s = &l->slow[i];
		if (strcmp(s->producer, one.producer) == 0 &&
		    strcmp(s->data_source, one.data_source) == 0)
			break;
	}
	if (i == l->n_slow) {
		s = append(l, (void **)&l->slow, l->n_slow,
		    SESSION_LOG_MAX_SLOW, sizeof(*s));
		if (s == NULL)
			return;
		*s = one;
		l->n_slow++;
	}
	if (event == SESSION_SLOW_START)
		l->slow[i].starts++;
	else
		l->slow[i].flushes++;
}

static void
take_slow(struct session_log *l, const struct pb_field *sources,
    enum session_event event)
{
	struct pb_reader r;
	struct pb_field f;

	if (sources->wire != PB_BYTES)
		return;
	PB_FOREACH(&f, &r, sources->data, sources->len) {
		if (f.number == DataSources_data_source && f.wire == PB_BYTES)
			take_slow_source(l, &f, event);
	}
}

static void
take_cloned(struct session_log *l, uint64_t buffer)
{
	if (l->n_cloned < SESSION_LOG_MAX_CLONED)
		l->cloned[l->n_cloned++] = (uint32_t)buffer;
	else
		l->overflow++;
}

static void
take_event(struct session_log *l, const struct packet_facts *f)
{
	struct session_event_count *c;
	struct pb_reader r;
	struct pb_field e;

	PB_FOREACH(&e, &r, f->payload.data, f->payload.len) {
		if (e.number >= SESSION_EVENTS)
			continue;
		c = &l->events[e.number];
		if (c->n++ == 0)
			c->first_ns = f->timestamp;
		c->last_ns = f->timestamp;
		if (e.number == SESSION_SLOW_START ||
		    e.number == SESSION_SLOW_FLUSH)
			take_slow(l, &e, (enum session_event)e.number);
		else if (e.number == SESSION_BUFFER_CLONED)
			take_cloned(l, e.value);
	}
}

/* A trigger is told twice: that it was hit, and that a snapshot is due. */
static bool
same_trigger(const struct session_trigger *a, const struct session_trigger *b)
{
	return a->ns == b->ns && a->uid == b->uid &&
	    strcmp(a->name, b->name) == 0 &&
	    strcmp(a->producer, b->producer) == 0;
}

static void
take_trigger(struct session_log *l, const struct packet_facts *f)
{
	struct session_trigger one = { .ns = f->timestamp }, *t;
	struct pb_reader r;
	struct pb_field e;
	size_t i;

	one.clone = f->type == TracePacket_clone_snapshot_trigger;
	PB_FOREACH(&e, &r, f->payload.data, f->payload.len) {
		if (e.number == Trigger_trigger_name)
			copy_name(one.name, &e);
		else if (e.number == Trigger_producer_name)
			copy_name(one.producer, &e);
		else if (e.number == Trigger_trusted_producer_uid)
			one.uid = (int32_t)e.value;
	}
	for (i = 0; i < l->n_triggers; i++) {
		t = &l->triggers[i];
		if (t->clone != one.clone && same_trigger(t, &one)) {
			t->clone = true;
			return;
		}
	}
	t = append(l, (void **)&l->triggers, l->n_triggers,
	    SESSION_LOG_MAX_TRIGGERS, sizeof(*t));
	if (t == NULL)
		return;
	*t = one;
	l->n_triggers++;
}

static struct session_machine *
find_machine(const struct session_log *l, uint32_t id)
{
	struct session_machine *m;

	HASH_MAP_FOREACH_OF(m, &l->machines, hash_number(id), link)
		if (m->id == id)
			return m;
	return NULL;
}

/* Finds or makes it; NULL: there are too many. */
static struct session_machine *
machine_of(struct session_log *l, uint32_t id)
{
	struct session_machine *m = find_machine(l, id);

	if (m != NULL)
		return m;
	if (l->machines.n == SESSION_LOG_MAX_MACHINES) {
		l->overflow++;
		return NULL;
	}
	if ((m = calloc(1, sizeof(*m))) == NULL) {
		l->no_memory = true;
		return NULL;
	}
	m->id = id;
	hash_map_put(&l->machines, &m->link, hash_number(id));
	return m;
}

static const char *
or_nothing(const char *text)
{
	return text == NULL ? "" : text;
}

static void
take_system_info(struct session_log *l, const struct packet_facts *f)
{
	Perfetto__Protos__SystemInfo *info;
	struct session_machine *m;

	if ((m = machine_of(l, f->machine_id)) == NULL)
		return;
	info = perfetto__protos__system_info__unpack(NULL, f->payload.len,
	    f->payload.data);
	if (info == NULL)
		return;
	snprintf(m->name, sizeof(m->name), "%s",
	    or_nothing(info->machine_name));
	snprintf(m->service, sizeof(m->service), "%s",
	    or_nothing(info->tracing_service_version));
	if (info->utsname != NULL)
		snprintf(m->system, sizeof(m->system), "%s %s %s",
		    or_nothing(info->utsname->sysname),
		    or_nothing(info->utsname->release),
		    or_nothing(info->utsname->machine));
	m->cpus = info->num_cpus;
	perfetto__protos__system_info__free_unpacked(info, NULL);
}

static void
take_segment(struct session_log *l, const struct pb_field *segment)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, segment->data, segment->len) {
		if (f.number == Segment_end)
			l->segment_ended = true;
	}
}

void
session_log_take(struct session_log *l, const struct packet_facts *f)
{
	if (f->sequence_id <= PACKET_SERVICE_SEQUENCE)
		take_segment(l, &f->segment);
	if (f->sequence_id > PACKET_SERVICE_SEQUENCE ||
	    f->payload.wire != PB_BYTES)
		return;
	switch (f->type) {
	case TracePacket_trace_config:
		take_config(l, &f->payload);
		break;
	case TracePacket_trace_uuid:
		take_uuid(l, &f->payload);
		break;
	case TracePacket_service_event:
		take_event(l, f);
		break;
	case TracePacket_trigger:
	case TracePacket_clone_snapshot_trigger:
		take_trigger(l, f);
		break;
	case TracePacket_system_info:
		take_system_info(l, f);
		break;
	case TracePacket_protovms:
		session_programs_take(&l->programs, &f->payload);
		break;
	default:
		break;
	}
}

const struct session_machine *
session_log_machine(const struct session_log *l, uint32_t id)
{
	return find_machine(l, id);
}
