#include "client/ftrace/events/event_translate.h"

#include <string.h>

#include "client/ftrace/events/comm_text.h"
#include "client/ftrace/events/event_plan.h"
#include "client/ftrace/events/pid_notes.h"
#include "client/ftrace/events/printk_strings.h"
#include "client/ftrace/events/symbol_index.h"
#include "client/tracing/packet/packet.h"
#include "protos/fields.h"

/* A record of the kernel's, of at least plan->size bytes. */
struct record {
	const uint8_t *data;
	size_t len;
	size_t room; /* for all of its event, but text that is elsewhere */
};

#define LOAD(type, at) \
	__extension__({ type load_v; memcpy(&load_v, (at), sizeof(load_v)); \
	    load_v; })

/* Room was asked for beforehand, for all of the event. */
static inline void
put_number(struct tributary_packet *out, uint32_t field, uint64_t v)
{
	out->at = packet_varint(packet_tag(out->at, field, PB_VARINT), v);
}

static inline void
put_text(struct tributary_packet *out, uint32_t field, const void *text,
    size_t max)
{
	size_t len = strnlen(text, max);

	out->at = packet_varint(packet_tag(out->at, field, PB_BYTES), len);
	memcpy(out->at, text, len);
	out->at += len;
}

/* All 16 bytes are copied: there is room, and the next field lies over them. */
static inline void
put_comm(struct tributary_packet *out, uint32_t field, const uint8_t *text)
{
	size_t len = comm_text_len(text);

	out->at = packet_varint(packet_tag(out->at, field, PB_BYTES), len);
	memcpy(out->at, text, COMM_BYTES);
	out->at += len;
}

/*
 * The kernel has 20 bits of a minor number below the major one; programs, and
 * major() and minor(), have its low 8 bits below the major one and the others
 * above.
 */
static uint64_t
user_dev(uint64_t dev)
{
	uint64_t major = dev >> 20, minor = dev & 0xfffff;

	return (minor & 0xff) | major << 8 | (minor & ~UINT64_C(0xff)) << 12;
}

static uint64_t
word(const uint8_t *at, uint16_t size)
{
	return size == 4 ? LOAD(uint32_t, at) : LOAD(uint64_t, at);
}

/* Text of 0 to 65535 bytes anywhere in the record.  False: outside of it. */
static bool
put_located(struct tributary_packet *out, const struct record *r,
    const struct event_step *s)
{
	uint32_t loc = LOAD(uint32_t, r->data + s->offset);
	size_t offset = loc & 0xffff, len = loc >> 16;

	if (s->kind == EVENT_STEP_REL_LOC)
		offset += (size_t)s->offset + s->size;
	if (len == 0)
		return true;
	if (offset + len > r->len)
		return false;
	put_text(out, s->field, r->data + offset, len);
	return true;
}

static void
put_words(struct tributary_packet *out, const uint8_t *at,
    const struct event_step *s)
{
	uint16_t size = s->size / 6, i;

	for (i = 0; i < 6; i++)
		put_number(out, s->field, word(at + (size_t)i * size, size));
}

/* False: no room for the text, and for all else that may follow it. */
static bool
put_pointed(struct tributary_packet *out, const struct record *r,
    const struct event_step *s, const struct translate_env *env)
{
	const char *text = printk_strings_find(env->strings,
	    word(r->data + s->offset, s->size));
	size_t len = strlen(text);

	if (!packet_room(out, r->room + len))
		return false;
	put_text(out, s->field, text, len);
	return true;
}

/* False: the record is broken, or the packet has failed. */
static inline bool
put_step(struct tributary_packet *out, const struct record *r,
    const struct event_step *s, const struct translate_env *env)
{
	const uint8_t *at = r->data + s->offset;
	int32_t pid;

	switch (s->kind) {
	case EVENT_STEP_U8:
		put_number(out, s->field, *at);
		break;
	case EVENT_STEP_U16:
		put_number(out, s->field, LOAD(uint16_t, at));
		break;
	case EVENT_STEP_U32:
		put_number(out, s->field, LOAD(uint32_t, at));
		break;
	case EVENT_STEP_U64:
		put_number(out, s->field, LOAD(uint64_t, at));
		break;
	case EVENT_STEP_I8:
		put_number(out, s->field, (uint64_t)LOAD(int8_t, at));
		break;
	case EVENT_STEP_I16:
		put_number(out, s->field, (uint64_t)LOAD(int16_t, at));
		break;
	case EVENT_STEP_I32:
		put_number(out, s->field, (uint64_t)LOAD(int32_t, at));
		break;
	case EVENT_STEP_I64:
		put_number(out, s->field, LOAD(uint64_t, at));
		break;
	case EVENT_STEP_PID:
		pid = LOAD(int32_t, at);
		pid_notes_add(env->pids, pid);
		put_number(out, s->field, (uint64_t)(int64_t)pid);
		break;
	case EVENT_STEP_DEV:
		put_number(out, s->field, user_dev(word(at, s->size)));
		break;
	case EVENT_STEP_WORDS:
		put_words(out, at, s);
		break;
	case EVENT_STEP_SYMBOL:
		put_number(out, s->field, symbol_index_add(env->symbols,
		    word(at, s->size)));
		break;
	case EVENT_STEP_COMM:
		put_comm(out, s->field, at);
		break;
	case EVENT_STEP_TEXT:
		put_text(out, s->field, at, s->size);
		break;
	case EVENT_STEP_TEXT_REST:
		put_text(out, s->field, at, r->len - s->offset);
		break;
	case EVENT_STEP_DATA_LOC:
	case EVENT_STEP_REL_LOC:
		return put_located(out, r, s);
	case EVENT_STEP_TEXT_POINTER:
		return put_pointed(out, r, s, env);
	}
	return true;
}

static bool
put_steps(struct tributary_packet *out, const struct record *r,
    const struct event_plan *plan, const struct translate_env *env)
{
	size_t i;

	for (i = 0; i < plan->n_steps; i++)
		if (UNLIKELY(!put_step(out, r, &plan->steps[i], env)))
			return false;
	return true;
}

static bool
put_generic(struct tributary_packet *out, const struct record *r,
    const struct event_plan *plan, const struct translate_env *env)
{
	const struct event_step *s;
	size_t i;

	tributary_put_string(out, GenericFtraceEvent_event_name, plan->name);
	for (i = 0; i < plan->n_steps; i++) {
		s = &plan->steps[i];
		packet_begin(out, GenericFtraceEvent_field);
		tributary_put_string(out, Field_name,
		    s->name);
		if (!put_step(out, r, s, env))
			return false;
		packet_end(out);
	}
	return true;
}

static bool
put_message(struct tributary_packet *out, const struct record *r,
    const struct event_plan *plan, const struct translate_env *env)
{
	switch (plan->form) {
	case EVENT_PLAN_TYPED:
	case EVENT_PLAN_DESCRIBED:
		return put_steps(out, r, plan, env);
	case EVENT_PLAN_GENERIC:
		return put_generic(out, r, plan, env);
	case EVENT_PLAN_KPROBE:
		tributary_put_string(out, KprobeEvent_name, plan->name);
		put_number(out, KprobeEvent_type, plan->kprobe_type);
		break;
	}
	return true;
}

enum translate_verdict
event_translate(const struct event_plan *plan, uint64_t time,
    const uint8_t *data, size_t len, const struct translate_env *env,
    struct tributary_packet *out)
{
	struct record r = { data, len, plan->room + plan->n_texts * len };
	size_t begin = packet_len(out);
	unsigned depth = out->depth;
	int32_t pid;

	if (UNLIKELY(len < plan->size))
		return EVENT_BROKEN;
	if (UNLIKELY(!packet_room(out, r.room)))
		return EVENT_NO_ROOM;
	packet_begin(out, FtraceEventBundle_event);
	put_number(out, FtraceEvent_timestamp, time);
	pid = LOAD(int32_t, data + plan->pid_offset);
	pid_notes_add(env->pids, pid);
	put_number(out, FtraceEvent_pid, (uint32_t)pid);
	packet_begin(out, plan->field);
	if (UNLIKELY(!put_message(out, &r, plan, env))) {
		if (out->failed)
			return EVENT_NO_ROOM;
		/* Also a packet that has grown keeps what is before it. */
		out->at = out->data + begin;
		out->depth = depth;
		return EVENT_BROKEN;
	}
	packet_end(out);
	packet_end(out);
	return UNLIKELY(out->failed) ? EVENT_NO_ROOM : EVENT_DONE;
}
