/*
 * A machine whose program, state and packets are the input's: frames of a
 * letter, a length (16 bits, little-endian, cut to what is left) and so many
 * bytes.
 *
 *	P  a new machine with this program
 *	L  its memory limit from now on, in units of 64 bytes: the length itself
 *	S  sets its state
 *	C  goes on with a clone
 *	else: applies a packet
 *
 * The state is a message after every frame, and as before after a packet that
 * fails; memory stays within its limit; and a state that is loaded comes out
 * as it went in.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/protovm/protovm.h"
#include "service/protovm/protovm_run.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define LIMIT_UNIT 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct machine {
	struct protovm *vm;
	size_t limit;
};

static void
check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void
state_of(const struct protovm *vm, struct pb_writer *w)
{
	pb_writer_init(w);
	protovm_state(vm, w);
	check(!w->failed, "writing the state");
	check(pb_well_formed(w->data, w->len), "the state is malformed");
}

static bool
same(const struct pb_writer *a, const void *data, size_t len)
{
	return a->len == len && (len == 0 || memcmp(a->data, data, len) == 0);
}

static void
make(struct machine *m, const uint8_t *data, size_t len)
{
	struct protovm_program *p;
	const uint8_t *kept;
	char err[256] = "";
	size_t n;

	protovm_free(m->vm);
	m->vm = NULL;
	p = protovm_program_new(data, len, err, sizeof(err));
	check(p != NULL || err[0] != '\0', "refused without a word");
	if (p == NULL)
		return;
	kept = protovm_program_bytes(p, &n);
	check(n == len && (n == 0 || memcmp(kept, data, n) == 0),
	    "the program's bytes");
	m->vm = protovm_new(p, m->limit);
	check(m->vm != NULL, "a new machine");
	protovm_program_unref(p);
}

static void
set_state(struct protovm *vm, const uint8_t *data, size_t len)
{
	struct pb_writer before, after;
	int rc;

	state_of(vm, &before);
	rc = protovm_set_state(vm, data, len);
	state_of(vm, &after);
	if (rc == 0)
		check(same(&after, data, len), "a state that was loaded");
	else
		check(same(&after, before.data, before.len),
		    "a state that was not loaded");
	pb_writer_done(&before);
	pb_writer_done(&after);
}

static void
clone(struct machine *m)
{
	struct protovm *copy = protovm_clone(m->vm);
	struct pb_writer a, b;

	if (copy == NULL)
		return;
	state_of(m->vm, &a);
	state_of(copy, &b);
	check(same(&b, a.data, a.len), "the state of a clone");
	pb_writer_done(&a);
	pb_writer_done(&b);
	protovm_free(m->vm);
	m->vm = copy;
}

static void
apply(struct protovm *vm, const uint8_t *data, size_t len)
{
	struct pb_writer before, after;
	enum protovm_verdict v;

	state_of(vm, &before);
	v = protovm_apply(vm, data, len);
	state_of(vm, &after);
	check(v < PROTOVM_VERDICTS, "a verdict");
	if (v != PROTOVM_OK && v != PROTOVM_SKIPPED)
		check(same(&after, before.data, before.len),
		    "a failed packet has changed the state");
	check(v == PROTOVM_OK || v == PROTOVM_OFF ||
	    protovm_reason(vm)[0] != '\0', "no reason");
	check(vm->memory.used <= vm->memory.limit, "memory");
	check(vm->memory.used == protovm_value_size(&vm->root.value),
	    "memory that is not the state's");
	pb_writer_done(&before);
	pb_writer_done(&after);
}

static void
run(struct machine *m, uint8_t letter, const uint8_t *data, size_t len)
{
	if (letter == 'P')
		make(m, data, len);
	else if (m->vm == NULL)
		return;
	else if (letter == 'S')
		set_state(m->vm, data, len);
	else if (letter == 'C')
		clone(m);
	else
		apply(m->vm, data, len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct machine m = { .limit = (size_t)1 << 20 };
	const uint8_t *end = data + size;
	uint8_t letter, *copy;
	size_t len;

	while (end - data >= 3) {
		letter = data[0];
		len = data[1] | (size_t)data[2] << 8;
		data += 3;
		if (letter == 'L') {
			m.limit = len * LIMIT_UNIT;
			continue;
		}
		if (len > (size_t)(end - data))
			len = (size_t)(end - data);
		/* Of its very size, so that a sanitizer sees one byte more. */
		if ((copy = malloc(len + (len == 0))) == NULL)
			break;
		if (len > 0)
			memcpy(copy, data, len);
		run(&m, letter, copy, len);
		free(copy);
		data += len;
	}
	protovm_free(m.vm);
	return 0;
}
