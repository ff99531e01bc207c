#include "service/ingest/buffer_vms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/model/model.h"
#include "service/packet/sequence_map.h"
#include "service/protovm/protovm.h"
#include "transport/base/hash_map.h"
#include "transport/base/log.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/packet/packet_check.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_writer.h"

/* Memory for packets in several pieces that is kept between packets. */
#define SCRATCH_KEPT (256u * 1024u)

struct buffer_vm {
	struct protovm *vm; /* owned; NULL: a refusal */
	char *source;       /* owned */
	uint64_t program_hash;
	size_t program_len;
	uint32_t machine; /* id */
	int32_t uid;
	bool put;  /* in the trace */
	bool lost; /* applied a packet since that the trace will not have */
	bool due;
};

/* A producer of an instance. */
struct seat {
	uint32_t producer;
	bool named; /* in the trace, as one of the instance */
	struct buffer_vm *vm;
};

struct buffer_vms {
	struct tb_watch watch;
	struct buffer_vm **all; /* in the order in which they were made */
	size_t n;
	struct seat *seats; /* by producer, then as they came */
	size_t n_seats;
	size_t seats_cap;
	uint8_t *scratch;
	size_t scratch_cap;
	uint64_t no_memory; /* packets that were not even looked at */
};

/* The first seat of this producer, or of the next one. */
static size_t
first_seat(const struct buffer_vms *v, uint64_t producer)
{
	size_t lo = 0, hi = v->n_seats, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (v->seats[mid].producer < producer)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* ---- Packets that leave ---- */

static bool
wants_cb(void *arg, uint64_t producer)
{
	const struct buffer_vms *v = arg;
	size_t i = first_seat(v, producer);

	return i < v->n_seats && v->seats[i].producer == producer;
}

/* The packet in one piece; NULL: no memory. */
static const uint8_t *
in_one_piece(struct buffer_vms *v, const struct tb_packet *p)
{
	uint8_t *grown;
	size_t i, at = 0;

	if (p->n_slices == 1)
		return p->slices[0].data;
	if (p->size > v->scratch_cap) {
		if ((grown = realloc(v->scratch, p->size)) == NULL)
			return NULL;
		v->scratch = grown;
		v->scratch_cap = p->size;
	}
	for (i = 0; i < p->n_slices; i++) {
		memcpy(v->scratch + at, p->slices[i].data, p->slices[i].len);
		at += p->slices[i].len;
	}
	return v->scratch;
}

static void
apply(struct buffer_vms *v, const struct tb_packet *p, const uint8_t *bytes,
    bool overwritten)
{
	size_t i = first_seat(v, p->origin->producer);
	struct buffer_vm *vm;

	for (; i < v->n_seats &&
	    v->seats[i].producer == p->origin->producer; i++) {
		vm = v->seats[i].vm;
		if (protovm_apply(vm->vm, bytes, p->size) != PROTOVM_OK)
			continue;
		vm->lost |= overwritten;
		return;
	}
}

static void
leaves_cb(void *arg, const struct tb_packet *p, bool overwritten)
{
	struct buffer_vms *v = arg;
	const uint8_t *bytes;

	if (p == NULL) {
		v->no_memory++;
		return;
	}
	if (packet_check(p->slices, p->n_slices, p->size) == PACKET_INVALID)
		return;
	if ((bytes = in_one_piece(v, p)) == NULL) {
		v->no_memory++;
		return;
	}
	apply(v, p, bytes, overwritten);
	if (v->scratch_cap > SCRATCH_KEPT) {
		free(v->scratch);
		v->scratch = NULL;
		v->scratch_cap = 0;
	}
}

/* ---- Life ---- */

struct buffer_vms *
buffer_vms_new(struct trace_buffer *tb)
{
	struct buffer_vms *v;

	if ((v = calloc(1, sizeof(*v))) == NULL)
		return NULL;
	v->watch.wants = wants_cb;
	v->watch.leaves = leaves_cb;
	v->watch.arg = v;
	trace_buffer_watch(tb, &v->watch);
	return v;
}

static void
vm_free(struct buffer_vm *vm)
{
	protovm_free(vm->vm);
	free(vm->source);
	free(vm);
}

void
buffer_vms_free(struct buffer_vms *v)
{
	if (v == NULL)
		return;
	while (v->n > 0)
		vm_free(v->all[--v->n]);
	free(v->all);
	free(v->seats);
	free(v->scratch);
	free(v);
}

/* Makes room for one more instance. */
static bool
grow(struct buffer_vms *v)
{
	struct buffer_vm **grown;

	if (v->n >= BUFFER_VMS_MAX)
		return false;
	grown = realloc(v->all, (v->n + 1) * sizeof(*grown));
	if (grown == NULL)
		return false;
	v->all = grown;
	return true;
}

static struct buffer_vm *
copy_vm(struct buffer_vms *to, const struct buffer_vm *from)
{
	struct buffer_vm *vm;

	if (!grow(to) || (vm = malloc(sizeof(*vm))) == NULL)
		return NULL;
	*vm = *from;
	vm->put = vm->lost = vm->due = false;
	vm->source = strdup(from->source);
	vm->vm = from->vm == NULL ? NULL : protovm_clone(from->vm);
	if (vm->source == NULL || (from->vm != NULL && vm->vm == NULL)) {
		vm_free(vm);
		return NULL;
	}
	to->all[to->n++] = vm;
	return vm;
}

static size_t
index_of(const struct buffer_vms *v, const struct buffer_vm *vm)
{
	size_t i;

	for (i = 0; v->all[i] != vm; i++)
		;
	return i;
}

struct buffer_vms *
buffer_vms_clone(const struct buffer_vms *v)
{
	struct buffer_vms *c;
	size_t i;

	if ((c = calloc(1, sizeof(*c))) == NULL ||
	    (c->seats = calloc(v->n_seats + 1, sizeof(*c->seats))) == NULL)
		goto fail;
	c->seats_cap = v->n_seats + 1;
	for (i = 0; i < v->n; i++)
		if (copy_vm(c, v->all[i]) == NULL)
			goto fail;
	for (; c->n_seats < v->n_seats; c->n_seats++) {
		c->seats[c->n_seats] = v->seats[c->n_seats];
		c->seats[c->n_seats].named = false;
		c->seats[c->n_seats].vm = c->all[index_of(v,
		    v->seats[c->n_seats].vm)];
	}
	return c;

fail:
	buffer_vms_free(c);
	return NULL;
}

void
buffer_vms_clear(struct buffer_vms *v)
{
	size_t i;

	for (i = 0; i < v->n; i++) {
		if (v->all[i]->vm == NULL)
			continue;
		/* The trace may have the state as it was. */
		if (protovm_set_state(v->all[i]->vm, NULL, 0) == 0)
			v->all[i]->lost = true;
	}
}

/* ---- Instances ---- */

struct buffer_vm *
buffer_vms_find(const struct buffer_vms *v, const struct buffer_vm_offer *o)
{
	uint64_t hash = hash_bytes(o->program, o->len);
	const uint8_t *bytes;
	struct buffer_vm *vm;
	size_t i, len;

	for (i = 0; i < v->n; i++) {
		vm = v->all[i];
		if (vm->machine != o->producer->machine->id ||
		    vm->uid != o->producer->uid || vm->program_hash != hash ||
		    vm->program_len != o->len ||
		    strcmp(vm->source, o->source) != 0)
			continue;
		if (vm->vm == NULL)
			return vm;
		bytes = protovm_program_bytes(protovm_program(vm->vm), &len);
		if (len == o->len && memcmp(bytes, o->program, len) == 0)
			return vm;
	}
	return NULL;
}

struct buffer_vm *
buffer_vms_add(struct buffer_vms *v, const struct buffer_vm_offer *o,
    struct protovm *machine)
{
	struct buffer_vm *vm;

	if (!grow(v) || (vm = calloc(1, sizeof(*vm))) == NULL)
		return NULL;
	if ((vm->source = strdup(o->source)) == NULL) {
		free(vm);
		return NULL;
	}
	vm->vm = machine;
	vm->program_hash = hash_bytes(o->program, o->len);
	vm->program_len = o->len;
	vm->machine = o->producer->machine->id;
	vm->uid = o->producer->uid;
	v->all[v->n++] = vm;
	return vm;
}

static bool
grow_seats(struct buffer_vms *v)
{
	size_t cap = v->seats_cap == 0 ? 8 : v->seats_cap * 2;
	struct seat *grown;

	if (v->n_seats < v->seats_cap)
		return true;
	if (v->n_seats >= BUFFER_VMS_PRODUCERS_MAX ||
	    (grown = realloc(v->seats, cap * sizeof(*grown))) == NULL)
		return false;
	v->seats = grown;
	v->seats_cap = cap;
	return true;
}

int
buffer_vms_join(struct buffer_vms *v, struct buffer_vm *vm,
    const struct producer *p)
{
	size_t i = first_seat(v, p->id), begin = i;

	if (vm->vm == NULL)
		return 0;
	for (; i < v->n_seats && v->seats[i].producer == p->id; i++)
		if (v->seats[i].vm == vm)
			return 0;
	if (i - begin >= BUFFER_VMS_OF_PRODUCER || !grow_seats(v))
		return -1;
	memmove(v->seats + i + 1, v->seats + i,
	    (v->n_seats - i) * sizeof(*v->seats));
	v->seats[i] = (struct seat){ .producer = p->id, .vm = vm };
	v->n_seats++;
	return 0;
}

bool
buffer_vms_has_source(const struct buffer_vms *v, const char *source)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		if (strcmp(v->all[i]->source, source) == 0)
			return true;
	return false;
}

static uint64_t
not_applied(const struct protovm *vm)
{
	return protovm_count(vm, PROTOVM_ABORTED) +
	    protovm_count(vm, PROTOVM_BAD_PACKET) +
	    protovm_count(vm, PROTOVM_NO_MEMORY) +
	    protovm_count(vm, PROTOVM_TOO_MANY_STEPS) +
	    protovm_count(vm, PROTOVM_OFF);
}

void
buffer_vms_complain(const struct buffer_vms *v,
    void (*say)(void *arg, const char *sentence), void *arg)
{
	char name[64], text[320];
	const struct buffer_vm *vm;
	uint64_t n;
	size_t i;

	for (i = 0; i < v->n; i++) {
		vm = v->all[i];
		if (vm->vm == NULL || (n = not_applied(vm->vm)) == 0)
			continue;
		log_escape(name, sizeof(name), vm->source, strlen(vm->source));
		snprintf(text, sizeof(text), "the ProtoVM of data source "
		    "\"%s\" could not apply %" PRIu64 " packets, so that its "
		    "state lacks them%s: %s", name, n,
		    protovm_is_off(vm->vm) ? ", and is switched off" : "",
		    protovm_reason(vm->vm));
		say(arg, text);
	}
	if (v->no_memory == 0)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 " packets were not applied to "
	    "a ProtoVM, as the collector had no memory to put them together",
	    v->no_memory);
	say(arg, text);
}

/* ---- Into a trace ---- */

void
buffer_vms_begin_pass(struct buffer_vms *v, struct sequence_map *m)
{
	struct seat *seat;
	size_t i;

	for (i = 0; i < v->n; i++)
		v->all[i]->due = v->all[i]->put && v->all[i]->lost;
	for (i = 0; i < v->n_seats; i++) {
		seat = &v->seats[i];
		if (!seat->named &&
		    sequence_map_number(m, seat->producer) > 0)
			seat->vm->due = true;
	}
}

struct buffer_vm *
buffer_vms_due(const struct buffer_vms *v)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		if (v->all[i]->due)
			return v->all[i];
	return NULL;
}

struct buffer_vm *
buffer_vms_in_trace(const struct buffer_vms *v, size_t i)
{
	size_t k;

	for (k = 0; k < v->n; k++)
		if (v->all[k]->put && i-- == 0)
			return v->all[k];
	return NULL;
}

void
buffer_vms_put(const struct buffer_vms *v, const struct buffer_vm *vm,
    struct sequence_map *m, int32_t uid, struct pb_writer *out)
{
	int32_t *producers = calloc(v->n_seats + 1, sizeof(*producers));
	struct service_protovm p = { .producers = producers };
	struct pb_writer state;
	size_t i;

	pb_writer_init(&state);
	protovm_state(vm->vm, &state);
	if (producers == NULL || state.failed) {
		out->failed = true;
		goto out;
	}
	for (i = 0; i < v->n_seats; i++)
		if (v->seats[i].vm == vm &&
		    sequence_map_number(m, v->seats[i].producer) > 0)
			producers[p.n_producers++] =
			    (int32_t)v->seats[i].producer;
	p.program = protovm_program_bytes(protovm_program(vm->vm),
	    &p.program_len);
	p.state = state.data;
	p.state_len = state.len;
	p.memory_limit_kb = (uint32_t)(protovm_memory_limit(vm->vm) / 1024);
	service_packets_protovm(out, uid, &p);

out:
	pb_writer_done(&state);
	free(producers);
}

void
buffer_vms_was_put(struct buffer_vms *v, struct buffer_vm *vm,
    struct sequence_map *m)
{
	size_t i;

	vm->put = true;
	vm->lost = vm->due = false;
	for (i = 0; i < v->n_seats; i++)
		if (v->seats[i].vm == vm &&
		    sequence_map_number(m, v->seats[i].producer) > 0)
			v->seats[i].named = true;
}
