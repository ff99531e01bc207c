#include "client/ftrace/events/event_plan.h"

#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/comm_text.h"
#include "client/ftrace/events/event_table.h"
#include "client/ftrace/format/event_format.h"
#include "client/tracing/packet/packet.h"
#include "protos/fields.h"

static bool
is_text(enum event_step_kind kind)
{
	return kind >= EVENT_STEP_COMM;
}

static bool
starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool
number_kind(const struct event_field *f, enum event_step_kind *kind)
{
	static const enum event_step_kind kinds[2][4] = {
		{ EVENT_STEP_U8, EVENT_STEP_U16, EVENT_STEP_U32,
		    EVENT_STEP_U64 },
		{ EVENT_STEP_I8, EVENT_STEP_I16, EVENT_STEP_I32,
		    EVENT_STEP_I64 },
	};
	size_t width;

	for (width = 0; width < 4; width++) {
		if (f->size == 1u << width) {
			*kind = kinds[f->is_signed][width];
			return true;
		}
	}
	return false;
}

/* How to read a field's bytes, as its C type says.  False: not at all. */
static bool
step_kind(const struct event_field *f, enum event_step_kind *kind)
{
	bool word = f->size == 4 || f->size == 8;

	switch (f->kind) {
	case EVENT_FIELD_NUMBER:
		if (strcmp(f->type, "dev_t") == 0 && word)
			*kind = EVENT_STEP_DEV;
		else if (strcmp(f->type, "pid_t") == 0 && f->size == 4)
			*kind = EVENT_STEP_PID;
		else
			return number_kind(f, kind);
		return true;
	case EVENT_FIELD_TEXT:
		*kind = f->size == COMM_BYTES ? EVENT_STEP_COMM :
		    EVENT_STEP_TEXT;
		return true;
	case EVENT_FIELD_TEXT_REST:
		*kind = EVENT_STEP_TEXT_REST;
		return true;
	case EVENT_FIELD_DATA_LOC_TEXT:
		*kind = EVENT_STEP_DATA_LOC;
		return true;
	case EVENT_FIELD_REL_LOC_TEXT:
		*kind = EVENT_STEP_REL_LOC;
		return true;
	case EVENT_FIELD_TEXT_POINTER:
		*kind = EVENT_STEP_TEXT_POINTER;
		return word;
	case EVENT_FIELD_POINTER:
		/* Functions are `void *`; other addresses are identities. */
		if (starts(f->type, "void *") || starts(f->type, "void*"))
			*kind = EVENT_STEP_SYMBOL;
		else
			return number_kind(f, kind);
		return word;
	case EVENT_FIELD_BYTES:
		*kind = EVENT_STEP_WORDS;
		return strcmp(f->type, "unsigned long") == 0 &&
		    (f->size == 6 * 4 || f->size == 6 * 8);
	case EVENT_FIELD_DATA_LOC_BYTES:
	case EVENT_FIELD_REL_LOC_BYTES:
		break;
	}
	return false;
}

/* A number may widen or be cut to the schema's type, text is text. */
static bool
fits(enum event_step_kind kind, const ProtobufCFieldDescriptor *to)
{
	switch (to->type) {
	case PROTOBUF_C_TYPE_STRING:
		return is_text(kind);
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_UINT64:
		return !is_text(kind) && (kind == EVENT_STEP_WORDS) ==
		    (to->label == PROTOBUF_C_LABEL_REPEATED);
	default:
		return false;
	}
}

static void
add_step(struct event_plan *p, const struct event_field *f,
    enum event_step_kind kind, uint32_t field)
{
	struct event_step *s = &p->steps[p->n_steps++];
	uint32_t end = (uint32_t)f->offset + f->size;

	s->kind = kind;
	s->offset = f->offset;
	s->size = f->size;
	s->field = field;
	s->name = NULL;
	p->size = end > p->size ? (uint16_t)end : p->size;
	p->room += PACKET_FIELD_MAX;
	if (kind == EVENT_STEP_TEXT || kind == EVENT_STEP_COMM)
		p->room += f->size;
	else if (kind == EVENT_STEP_WORDS)
		p->room += 6 * PACKET_FIELD_MAX;
	else if (kind == EVENT_STEP_TEXT_REST || kind == EVENT_STEP_DATA_LOC ||
	    kind == EVENT_STEP_REL_LOC)
		p->n_texts++;
}

/* In the schema's order, as messages are usually written. */
static void
plan_typed(struct event_plan *p, const struct event_format *format,
    const ProtobufCMessageDescriptor *message)
{
	const ProtobufCFieldDescriptor *to;
	const struct event_field *f;
	enum event_step_kind kind;
	unsigned i;

	for (i = 0; i < message->n_fields; i++) {
		to = &message->fields[i];
		f = event_format_field(format, to->name);
		if (f == NULL || !step_kind(f, &kind))
			continue;
		/* The function graph has functions as plain numbers. */
		if (starts(p->name, "funcgraph_") &&
		    strcmp(f->name, "func") == 0 &&
		    (f->size == 4 || f->size == 8))
			kind = EVENT_STEP_SYMBOL;
		if (fits(kind, to))
			add_step(p, f, kind, to->id);
	}
}

static bool
is_signed(enum event_step_kind kind)
{
	return kind >= EVENT_STEP_I8 && kind <= EVENT_STEP_PID;
}

static uint32_t
generic_field(enum event_step_kind kind)
{
	if (is_text(kind))
		return Field_str_value;
	return is_signed(kind) ? Field_int_value :
	    Field_uint_value;
}

/* False: no memory. */
static bool
plan_generic(struct event_plan *p, const struct event_format *format)
{
	const struct event_field *f;
	enum event_step_kind kind;
	struct event_step *s;
	size_t i;

	for (i = 0; i < format->n_fields; i++) {
		f = &format->fields[i];
		if (f->name[0] == '\0' || !step_kind(f, &kind) ||
		    kind == EVENT_STEP_WORDS)
			continue;
		add_step(p, f, kind, p->form == EVENT_PLAN_DESCRIBED ?
		    (uint32_t)p->n_steps + 1 : generic_field(kind));
		s = &p->steps[p->n_steps - 1];
		if ((s->name = strdup(f->name)) == NULL)
			return false;
		p->room += (uint32_t)strlen(s->name) + 2 * PACKET_FIELD_MAX;
	}
	p->room += (uint32_t)strlen(p->name) + PACKET_FIELD_MAX;
	return true;
}

static void
put_described_field(struct tributary_packet *out, const struct event_step *s)
{
	uint64_t type = FieldDescriptorProto_TYPE_UINT64;

	if (is_text(s->kind))
		type = FieldDescriptorProto_TYPE_STRING;
	else if (is_signed(s->kind))
		type = FieldDescriptorProto_TYPE_INT64;
	packet_begin(out, DescriptorProto_field);
	tributary_put_string(out, FieldDescriptorProto_name, s->name);
	packet_put_uint(out, FieldDescriptorProto_number, s->field);
	packet_put_uint(out, FieldDescriptorProto_label,
	    FieldDescriptorProto_LABEL_OPTIONAL);
	packet_put_uint(out, FieldDescriptorProto_type, type);
	packet_end(out);
}

/* The message's GenericEventDescriptor, for each bundle.  False: no memory. */
static bool
describe(struct event_plan *p)
{
	struct tributary_packet out;
	bool ok = false;
	size_t i;

	packet_init(&out);
	packet_put_uint(&out, GenericEventDescriptor_field_id,
	    p->field);
	packet_begin(&out,
	    GenericEventDescriptor_event_descriptor);
	tributary_put_string(&out, DescriptorProto_name, p->name);
	for (i = 0; i < p->n_steps; i++)
		put_described_field(&out, &p->steps[i]);
	packet_end(&out);
	tributary_put_string(&out,
	    GenericEventDescriptor_group_name, p->group);
	p->descriptor_len = packet_len(&out);
	if (!out.failed &&
	    (p->descriptor = malloc(p->descriptor_len)) != NULL) {
		memcpy(p->descriptor, out.data, p->descriptor_len);
		ok = true;
	}
	packet_done(&out);
	return ok;
}

/* Offset of a field with that size, in either signedness.  False: no such. */
static bool
find(const struct event_format *format, const char *name, uint16_t size,
    uint16_t *offset)
{
	const struct event_field *f = event_format_field(format, name);

	if (f == NULL || f->size != size || (f->kind != EVENT_FIELD_NUMBER &&
	    f->kind != EVENT_FIELD_TEXT))
		return false;
	*offset = f->offset;
	return true;
}

/*
 * Flags of the context that a wakeup came from, an interrupt or a task.  Only
 * columns have them: in an event of its own Trace Processor takes FtraceEvent's
 * common_flags for an event without a name.
 */
static bool
find_flags(const struct event_format *format, uint16_t *offset)
{
	size_t i;

	for (i = 0; i < format->n_common; i++) {
		if (strcmp(format->common[i].name, "common_flags") == 0 &&
		    format->common[i].size == 1) {
			*offset = format->common[i].offset;
			return true;
		}
	}
	return false;
}

/* Both events in columns, where their fields are as in all kernels so far. */
static void
plan_compact(struct event_plan *p, const struct event_format *format)
{
	struct compact_offsets *at = &p->at;

	if (p->field == FtraceEvent_sched_switch) {
		at->state_size = 8;
		if (!find(format, "prev_state", 8, &at->state)) {
			at->state_size = 4;
			if (!find(format, "prev_state", 4, &at->state))
				return;
		}
		if (find(format, "next_comm", COMM_BYTES, &at->comm) &&
		    find(format, "next_pid", 4, &at->pid) &&
		    find(format, "next_prio", 4, &at->prio))
			p->compact = EVENT_PLAN_SWITCH;
	} else if (p->field == FtraceEvent_sched_waking &&
	    find_flags(format, &at->flags)) {
		if (find(format, "comm", COMM_BYTES, &at->comm) &&
		    find(format, "pid", 4, &at->pid) &&
		    find(format, "prio", 4, &at->prio) &&
		    find(format, "target_cpu", 4, &at->cpu))
			p->compact = EVENT_PLAN_WAKING;
	}
}

static enum event_plan_filter
filter_of(uint32_t field)
{
	if (field == FtraceEvent_print)
		return EVENT_PLAN_PRINT;
	return field == FtraceEvent_sys_enter ||
	    field == FtraceEvent_sys_exit ? EVENT_PLAN_SYSCALL :
	    EVENT_PLAN_UNFILTERED;
}

/* Without steps.  NULL: no memory. */
static struct event_plan *
new_plan(const struct event_format *format, const char *name)
{
	struct event_plan *p;

	p = calloc(1, sizeof(*p) + format->n_fields * sizeof(p->steps[0]));
	if (p == NULL)
		return NULL;
	p->id = format->id;
	p->pid_offset = format->pid_offset;
	/* common_flags stand before it, in each kernel. */
	p->size = (uint16_t)(format->pid_offset + sizeof(int32_t));
	p->room = 4 * PACKET_FIELD_MAX;
	p->group = strdup(format->group);
	p->name = strdup(name);
	if (p->group == NULL || p->name == NULL) {
		event_plan_free(p);
		return NULL;
	}
	return p;
}

struct event_plan *
event_plan_new(const struct event_format *format, enum event_plan_form generic)
{
	const ProtobufCFieldDescriptor *known;
	struct event_plan *p;

	if ((p = new_plan(format, format->name)) == NULL)
		return NULL;
	known = event_table_find(format->group, format->name);
	if (known != NULL) {
		p->form = EVENT_PLAN_TYPED;
		p->field = known->id;
		p->filter = filter_of(known->id);
		plan_typed(p, format, known->descriptor);
		plan_compact(p, format);
		return p;
	}
	p->form = generic;
	p->field = generic == EVENT_PLAN_DESCRIBED ?
	    EVENT_PLAN_DESCRIBED_FIRST + format->id : FtraceEvent_generic;
	if (plan_generic(p, format) &&
	    (generic != EVENT_PLAN_DESCRIBED || describe(p)))
		return p;
	event_plan_free(p);
	return NULL;
}

struct event_plan *
event_plan_new_kprobe(const struct event_format *format, const char *name,
    uint32_t type)
{
	struct event_plan *p = new_plan(format, name);

	if (p == NULL)
		return NULL;
	p->form = EVENT_PLAN_KPROBE;
	p->field = FtraceEvent_kprobe_event;
	p->kprobe_type = type;
	p->room += (uint32_t)strlen(name) + 2 * PACKET_FIELD_MAX;
	return p;
}

void
event_plan_free(struct event_plan *p)
{
	size_t i;

	if (p == NULL)
		return;
	for (i = 0; i < p->n_steps; i++)
		free((char *)p->steps[i].name);
	free((char *)p->group);
	free((char *)p->name);
	free(p->descriptor);
	free(p);
}
