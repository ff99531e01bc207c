#include "service/protovm/protovm.h"

#include <stdlib.h>

#include "service/protovm/protovm_run.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/*
 * A leaky bucket of packets that took too many steps: each is worth so many
 * others, and at so many the machine is switched off.
 */
#define STRIKE     64u
#define STRIKES_MAX (8u * STRIKE)

struct protovm *
protovm_new(struct protovm_program *program, size_t memory_limit)
{
	struct protovm *vm = calloc(1, sizeof(*vm));

	if (vm == NULL)
		return NULL;
	vm->program = protovm_program_ref(program);
	vm->memory.limit = memory_limit;
	vm->journal.memory = &vm->memory;
	vm->reason = "";
	vm->pool = PROTOVM_STEPS_POOL;
	return vm;
}

void
protovm_free(struct protovm *vm)
{
	if (vm == NULL)
		return;
	protovm_journal_done(&vm->journal);
	protovm_value_free(&vm->memory, &vm->root.value);
	protovm_program_unref(vm->program);
	free(vm);
}

struct protovm *
protovm_clone(const struct protovm *vm)
{
	struct protovm *copy = protovm_new(vm->program, vm->memory.limit);
	struct pb_writer state;

	pb_writer_init(&state);
	protovm_state(vm, &state);
	if (copy != NULL && (state.failed ||
		protovm_set_state(copy, state.data, state.len) != 0)) {
		protovm_free(copy);
		copy = NULL;
	}
	pb_writer_done(&state);
	return copy;
}

int
protovm_set_state(struct protovm *vm, const uint8_t *data, size_t len)
{
	struct pb_field f = { .wire = PB_BYTES, .data = data, .len = len };
	struct protovm_value v = { .kind = PROTOVM_EMPTY };
	struct protovm_memory fresh = { .limit = vm->memory.limit };

	if (!pb_well_formed(data, len) ||
	    (len > 0 && !protovm_value_copy(&fresh, &v, &f)))
		return -1;
	if (fresh.used > fresh.limit) {
		protovm_value_free(&fresh, &v);
		return -1;
	}
	protovm_value_free(&vm->memory, &vm->root.value);
	vm->memory.used += fresh.used;
	vm->root.value = v;
	vm->credit += (uint64_t)len * PROTOVM_CREDIT_PER_BYTE;
	return 0;
}

/* The changes stay if the state fits into its memory with them. */
static bool
commit(struct protovm *vm)
{
	size_t used = vm->memory.used;

	if (used > vm->memory.limit &&
	    used - protovm_journal_garbage(&vm->journal) > vm->memory.limit)
		return false;
	protovm_journal_commit(&vm->journal);
	return true;
}

static void
count_strike(struct protovm *vm, enum protovm_verdict v)
{
	if (v == PROTOVM_TOO_MANY_STEPS)
		vm->strikes += STRIKE;
	else if (vm->strikes > 0)
		vm->strikes--;
	vm->is_off = vm->strikes >= STRIKES_MAX;
}

/* Takes from the pool the steps that the packet's bytes did not earn. */
static void
charge(struct protovm *vm, const struct protovm_run *r, size_t len)
{
	uint64_t taken = r->given - r->steps;
	uint64_t earned = (uint64_t)len * PROTOVM_STEPS_PER_BYTE;

	if (taken > earned)
		vm->pool -= taken - earned < vm->pool ? taken - earned :
		    vm->pool;
	vm->pool += PROTOVM_STEPS_REFILL;
	if (vm->pool > PROTOVM_STEPS_POOL)
		vm->pool = PROTOVM_STEPS_POOL;
}

static enum protovm_verdict
apply(struct protovm *vm, const uint8_t *packet, size_t len)
{
	struct protovm_run r = { .vm = vm, .program = vm->program };
	enum protovm_outcome o = protovm_run(&r, packet, len);

	charge(vm, &r, len);
	if (o != PROTOVM_FAILED && !commit(vm))
		o = protovm_run_no_memory(&r);
	if (o != PROTOVM_FAILED) {
		vm->reason = o == PROTOVM_DONE ? "" :
		    "a field that the program selects is missing";
		return o == PROTOVM_DONE ? PROTOVM_OK : PROTOVM_SKIPPED;
	}
	protovm_journal_undo(&vm->journal);
	vm->reason = r.reason;
	return r.verdict;
}

enum protovm_verdict
protovm_apply(struct protovm *vm, const uint8_t *packet, size_t len)
{
	enum protovm_verdict v = PROTOVM_OFF;

	if (!vm->is_off) {
		v = apply(vm, packet, len);
		count_strike(vm, v);
	}
	vm->counts[v]++;
	return v;
}

void
protovm_state(const struct protovm *vm, struct pb_writer *out)
{
	protovm_fields_put(&vm->root.value, out);
}

size_t
protovm_memory(const struct protovm *vm)
{
	return sizeof(*vm) + vm->memory.used;
}

size_t
protovm_memory_limit(const struct protovm *vm)
{
	return vm->memory.limit;
}

struct protovm_program *
protovm_program(const struct protovm *vm)
{
	return vm->program;
}

uint64_t
protovm_count(const struct protovm *vm, enum protovm_verdict v)
{
	return vm->counts[v];
}

bool
protovm_is_off(const struct protovm *vm)
{
	return vm->is_off;
}

const char *
protovm_reason(const struct protovm *vm)
{
	return vm->reason;
}
