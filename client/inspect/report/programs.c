#include "client/inspect/report/programs.h"

#include <stdlib.h>

#include "protos/fields.h"
#include "protos/json_out.h"
#include "transport/base/hash_map.h"
#include "transport/wire/pb_reader.h"

void
session_programs_done(struct session_programs *p)
{
	free(p->all);
	*p = (struct session_programs){ .n = 0 };
}

static void
read_program(struct session_program *s, const struct pb_field *program)
{
	struct pb_reader r;
	struct pb_field f;

	s->hash = hash_bytes(program->data, program->len);
	s->bytes = program->len;
	PB_FOREACH(&f, &r, program->data, program->len)
		if (f.number == VmProgram_instructions)
			s->instructions++;
}

static void
read_instance(struct session_program *s, const struct pb_field *instance)
{
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, instance->data, instance->len)
		switch (f.number) {
		case Instance_program:
			if (f.wire == PB_BYTES)
				read_program(s, &f);
			break;
		case Instance_state:
			s->state_bytes = f.len;
			break;
		case Instance_memory_limit_kb:
			s->memory_limit_kb = f.value;
			break;
		case Instance_producer_id:
			if (s->n_producers < SESSION_PROGRAM_PRODUCERS_MAX)
				s->producers[s->n_producers] =
				    (int32_t)f.value;
			s->n_producers++;
			break;
		default:
			break;
		}
}

/* The place of an instance; NULL: there is no room for one more. */
static struct session_program *
place_of(struct session_programs *p, const struct session_program *s)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->all[i].hash == s->hash &&
		    p->all[i].producers[0] == s->producers[0])
			return &p->all[i];
	if (p->n == SESSION_PROGRAMS_MAX)
		return NULL;
	if (p->all == NULL && (p->all = calloc(SESSION_PROGRAMS_MAX,
	    sizeof(*p->all))) == NULL)
		return NULL;
	return &p->all[p->n++];
}

void
session_programs_take(struct session_programs *p,
    const struct pb_field *protovms)
{
	struct session_program s, *at;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, protovms->data, protovms->len) {
		if (f.number != ProtoVms_instance || f.wire != PB_BYTES)
			continue;
		s = (struct session_program){ .bytes = 0 };
		read_instance(&s, &f);
		if ((at = place_of(p, &s)) == NULL) {
			p->overflow++;
			continue;
		}
		s.times = at->times + 1;
		*at = s;
	}
}

void
session_programs_json(const struct session_programs *p, struct json_out *j)
{
	const struct session_program *s;
	size_t i, k;

	json_array(j, "programs");
	for (i = 0; i < p->n; i++) {
		s = &p->all[i];
		json_object(j, NULL);
		json_array(j, "producers");
		for (k = 0; k < s->n_producers &&
		    k < SESSION_PROGRAM_PRODUCERS_MAX; k++)
			json_int(j, NULL, s->producers[k]);
		json_array_end(j);
		json_uint(j, "n_producers", s->n_producers);
		json_uint(j, "program_bytes", s->bytes);
		json_uint(j, "instructions", s->instructions);
		json_uint(j, "state_bytes", s->state_bytes);
		json_uint(j, "memory_limit_kb", s->memory_limit_kb);
		json_uint(j, "packets", s->times);
		json_object_end(j);
	}
	json_array_end(j);
	if (p->overflow > 0)
		json_uint(j, "programs_left_out", p->overflow);
}
