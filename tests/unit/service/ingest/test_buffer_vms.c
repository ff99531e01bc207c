#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/trace_packet.pb-c.h"
#include "service/ingest/buffer_vms.h"
#include "service/model/model.h"
#include "service/packet/sequence_map.h"
#include "service/protovm/protovm.h"
#include "tests/unit/service/protovm/wire_text.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/wire/pb_writer.h"

/* Merges a packet's test event into the state's. */
#define SRC(n) "select { relative_path { field_id: " n " } } "
#define DST(n) "select { cursor: VM_CURSOR_DST create_if_not_exist: true " \
	"relative_path { field_id: " n " } } "
#define MERGES(n)                                                             \
	"instructions { " SRC(n) "nested_instructions { " DST(n)              \
	"nested_instructions { merge {} } } } "
#define EVENTS MERGES("900")

struct fixture {
	struct trace_buffer *tb;
	struct buffer_vms *vms;
	struct sequence_map *m;
	struct machine machine;
	struct producer producer; /* number 1 */
	uint32_t chunk; /* id of the next */
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->tb = trace_buffer_new(4096, TB_RING);
	f->vms = buffer_vms_new(f->tb);
	f->m = sequence_map_new(false);
	assert_non_null(f->vms);
	f->producer.id = 1;
	f->producer.machine = &f->machine;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	trace_buffer_free(f->tb);
	buffer_vms_free(f->vms);
	sequence_map_free(f->m);
	free(f);
	return 0;
}

/* Offers a program, as a session does when it sets up a producer. */
static struct buffer_vm *
offer(struct fixture *f, const struct producer *p, const char *source,
    const char *text)
{
	struct buffer_vm_offer o = { .producer = p, .source = source };
	struct protovm_program *program;
	struct buffer_vm *vm;
	char err[256];

	program = wire_text_program(text, err, sizeof(err));
	assert_non_null(program);
	o.program = protovm_program_bytes(program, &o.len);
	if ((vm = buffer_vms_find(f->vms, &o)) == NULL)
		vm = buffer_vms_add(f->vms, &o, protovm_new(program, 65536));
	assert_non_null(vm);
	assert_ptr_equal(buffer_vms_find(f->vms, &o), vm);
	protovm_program_unref(program);
	return vm;
}

static struct buffer_vm *
join(struct fixture *f, const struct producer *p, const char *source,
    const char *program)
{
	struct buffer_vm *vm = offer(f, p, source, program);

	assert_int_equal(buffer_vms_join(f->vms, vm, p), 0);
	return vm;
}

/* A chunk with a packet of this text. */
static void
write_packet(struct fixture *f, uint32_t producer, const char *text)
{
	struct tb_origin o = { .producer = producer, .writer = 1 };
	struct pb_writer w, packet;

	pb_writer_init(&packet);
	wire_text(text, &packet);
	pb_writer_init(&w);
	pb_put_varint(&w, packet.len);
	pb_put_raw(&w, packet.data, packet.len);
	assert_true(trace_buffer_write(f->tb, &o, &(struct tb_chunk){
	    .id = f->chunk++, .num_fragments = 1, .complete = true,
	    .payload = w.data, .len = w.len }));
	sequence_map_count_chunk(f->m, &o, 0, w.len);
	pb_writer_done(&w);
	pb_writer_done(&packet);
}

/* Has the ring overwrite all that is in it. */
static void
lap(struct fixture *f)
{
	uint8_t bytes[256] = { 0 };
	uint32_t i;

	/* One fragment: a varint of two bytes, and the rest. */
	bytes[0] = 0xfe;
	bytes[1] = 1;
	for (i = 0; i < 32; i++)
		trace_buffer_write(f->tb, &(struct tb_origin){ .producer = 99,
		    .writer = 1 }, &(struct tb_chunk){ .id = f->chunk++,
		    .num_fragments = 1, .complete = true, .payload = bytes,
		    .len = sizeof(bytes) });
}

static Perfetto__Protos__TracePacket *
take(const struct buffer_vms *v, const struct buffer_vm *vm,
    struct sequence_map *m)
{
	Perfetto__Protos__TracePacket *p;
	struct pb_writer w;

	pb_writer_init(&w);
	buffer_vms_put(v, vm, m, 7, &w);
	assert_false(w.failed);
	p = perfetto__protos__trace_packet__unpack(NULL, w.len, w.data);
	pb_writer_done(&w);
	assert_non_null(p);
	assert_int_equal(p->data_case,
	    PERFETTO__PROTOS__TRACE_PACKET__DATA_PROTOVMS);
	assert_int_equal(p->protovms->n_instance, 1);
	return p;
}

/* text: of the state's test event; NULL: it has none. */
static void
expect_state(struct fixture *f, const struct buffer_vms *v,
    const struct buffer_vm *vm, const char *text)
{
	Perfetto__Protos__TracePacket *p = take(v, vm, f->m);
	const Perfetto__Protos__TracePacket *state =
	    p->protovms->instance[0]->state;

	if (text == NULL) {
		assert_int_not_equal(state->data_case,
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING);
	} else {
		assert_int_equal(state->data_case,
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING);
		assert_string_equal(state->for_testing->str, text);
	}
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
}

static void
expect_producers(struct fixture *f, const struct buffer_vm *vm, size_t n)
{
	Perfetto__Protos__TracePacket *p = take(f->vms, vm, f->m);

	assert_int_equal(p->protovms->instance[0]->n_producer_id, n);
	assert_int_equal(p->protovms->instance[0]->memory_limit_kb, 64);
	perfetto__protos__trace_packet__free_unpacked(p, NULL);
}

static void
what_is_overwritten_is_in_the_state_and_the_rest_is_not(void **state)
{
	struct fixture *f = *state;
	struct buffer_vm *vm = join(f, &f->producer, "src", EVENTS);

	write_packet(f, 1, "900:{1:'a'}");
	write_packet(f, 1, "900:{1:'b'}");
	expect_state(f, f->vms, vm, NULL);
	lap(f);
	expect_state(f, f->vms, vm, "b");
	write_packet(f, 2, "900:{1:'of another producer'}");
	write_packet(f, 1, "900:{1:'forged'} 3:0");
	write_packet(f, 1, "900:{1:'c'}");
	write_packet(f, 1, "900:{1:'is there'}");
	lap(f);
	expect_state(f, f->vms, vm, "is there");
	write_packet(f, 1, "3:0 900:{1:'forged'}");
	lap(f);
	expect_state(f, f->vms, vm, "is there");
}

static void
a_packet_goes_to_the_first_program_that_accepts_it(void **state)
{
	struct fixture *f = *state;
	struct buffer_vm *other = join(f, &f->producer, "a", MERGES("8"));
	struct buffer_vm *first = join(f, &f->producer, "b", EVENTS);
	struct buffer_vm *second = join(f, &f->producer, "c", EVENTS);

	assert_ptr_not_equal(first, second);
	write_packet(f, 1, "900:{1:'a'}");
	lap(f);
	expect_state(f, f->vms, other, NULL);
	expect_state(f, f->vms, first, "a");
	expect_state(f, f->vms, second, NULL);
}

static void
machines_and_users_have_states_of_their_own(void **state)
{
	struct fixture *f = *state;
	struct machine elsewhere = { .id = 7 };
	struct producer same = { .id = 2, .machine = &f->machine };
	struct producer far = { .id = 3, .machine = &elsewhere };
	struct producer user = { .id = 4, .machine = &f->machine, .uid = 9 };
	struct buffer_vm *vm = join(f, &f->producer, "src", EVENTS);

	assert_ptr_equal(join(f, &same, "src", EVENTS), vm);
	assert_ptr_not_equal(join(f, &far, "src", EVENTS), vm);
	assert_ptr_not_equal(join(f, &user, "src", EVENTS), vm);
	assert_ptr_not_equal(join(f, &same, "other", EVENTS), vm);
	write_packet(f, 3, "900:{1:'far'}");
	write_packet(f, 4, "900:{1:'user'}");
	lap(f);
	expect_state(f, f->vms, vm, NULL);
	write_packet(f, 2, "900:{1:'same'}");
	lap(f);
	expect_state(f, f->vms, vm, "same");
	assert_true(buffer_vms_has_source(f->vms, "other"));
	assert_false(buffer_vms_has_source(f->vms, "none"));
}

/* Whether an instance is due; it is put then. */
static bool
is_due(struct fixture *f, struct buffer_vms *v)
{
	struct buffer_vm *vm;

	buffer_vms_begin_pass(v, f->m);
	if ((vm = buffer_vms_due(v)) == NULL)
		return false;
	buffer_vms_was_put(v, vm, f->m);
	assert_null(buffer_vms_due(v));
	return true;
}

static void
a_trace_gets_a_state_once_and_again_behind_each_loss(void **state)
{
	struct fixture *f = *state;
	struct producer second = { .id = 2, .machine = &f->machine };
	struct buffer_vm *vm = join(f, &f->producer, "src", EVENTS);
	struct tb_packet p;

	/* Importers need the sequences of a program's producers. */
	assert_false(is_due(f, f->vms));
	expect_producers(f, vm, 0);
	write_packet(f, 1, "900:{1:'a'}");
	assert_true(is_due(f, f->vms));
	assert_false(is_due(f, f->vms));
	/* Packets that are read are in the trace. */
	trace_buffer_begin_read(f->tb);
	assert_true(trace_buffer_read(f->tb, &p));
	expect_state(f, f->vms, vm, "a");
	assert_false(is_due(f, f->vms));
	/* Packets that say nothing to the program are no loss of its. */
	write_packet(f, 1, "8:1");
	lap(f);
	assert_false(is_due(f, f->vms));
	write_packet(f, 1, "900:{1:'b'}");
	lap(f);
	assert_true(is_due(f, f->vms));
	assert_false(is_due(f, f->vms));
	join(f, &second, "src", EVENTS);
	assert_false(is_due(f, f->vms));
	write_packet(f, 2, "900:{1:'c'}");
	assert_true(is_due(f, f->vms));
	expect_producers(f, vm, 2);
	assert_false(is_due(f, f->vms));
}

static void
a_clone_keeps_the_state_that_it_began_with(void **state)
{
	struct fixture *f = *state;
	struct buffer_vm *vm = join(f, &f->producer, "src", EVENTS);
	struct buffer_vms *clone;

	write_packet(f, 1, "900:{1:'a'}");
	lap(f);
	assert_true(is_due(f, f->vms));
	clone = buffer_vms_clone(f->vms);
	assert_non_null(clone);
	write_packet(f, 1, "900:{1:'b'}");
	lap(f);
	expect_state(f, f->vms, vm, "b");
	buffer_vms_begin_pass(clone, f->m);
	assert_non_null(buffer_vms_due(clone));
	expect_state(f, clone, buffer_vms_due(clone), "a");
	assert_true(is_due(f, clone));
	assert_false(is_due(f, clone));
	buffer_vms_free(clone);
}

static void
a_state_that_was_cleared_is_put_again(void **state)
{
	struct fixture *f = *state;
	struct buffer_vm *vm = join(f, &f->producer, "src", EVENTS);

	write_packet(f, 1, "900:{1:'a'}");
	lap(f);
	assert_true(is_due(f, f->vms));
	buffer_vms_clear(f->vms);
	expect_state(f, f->vms, vm, NULL);
	assert_true(is_due(f, f->vms));
}

static void
a_refusal_is_remembered_and_runs_nothing(void **state)
{
	struct fixture *f = *state;
	struct buffer_vm_offer o = { .producer = &f->producer, .source = "src",
		.program = (const uint8_t *)"nonsense", .len = 8 };
	struct buffer_vm *vm = buffer_vms_add(f->vms, &o, NULL);
	struct buffer_vms *clone;

	assert_ptr_equal(buffer_vms_find(f->vms, &o), vm);
	assert_int_equal(buffer_vms_join(f->vms, vm, &f->producer), 0);
	write_packet(f, 1, "900:{1:'a'}");
	lap(f);
	assert_false(is_due(f, f->vms));
	buffer_vms_clear(f->vms);
	clone = buffer_vms_clone(f->vms);
	assert_non_null(clone);
	assert_false(is_due(f, clone));
	buffer_vms_free(clone);
	o.len = 7;
	assert_null(buffer_vms_find(f->vms, &o));
}

static void
a_producer_has_a_bounded_number_of_programs(void **state)
{
	struct fixture *f = *state;
	char source[16];
	unsigned i;

	for (i = 0; i < BUFFER_VMS_OF_PRODUCER; i++) {
		snprintf(source, sizeof(source), "source %u", i);
		join(f, &f->producer, source, EVENTS);
		join(f, &f->producer, source, EVENTS);
	}
	assert_int_equal(buffer_vms_join(f->vms, offer(f, &f->producer,
	    "one more", EVENTS), &f->producer), -1);
}

static void
note_sentence(void *arg, const char *sentence)
{
	snprintf(arg, 512, "%s", sentence);
}

static void
packets_that_cannot_be_applied_are_told(void **state)
{
	struct fixture *f = *state;
	char said[512] = "";

	join(f, &f->producer, "src", EVENTS);
	buffer_vms_complain(f->vms, note_sentence, said);
	assert_string_equal(said, "");
	/* The test event is no message. */
	write_packet(f, 1, "900:5");
	write_packet(f, 1, "900:5");
	lap(f);
	buffer_vms_complain(f->vms, note_sentence, said);
	assert_non_null(strstr(said, "the ProtoVM of data source \"src\" could "
	    "not apply 2 packets, so that its state lacks them: "));
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(what_is_overwritten_is_in_the_state_and_the_rest_is_not),
		RULE(a_packet_goes_to_the_first_program_that_accepts_it),
		RULE(machines_and_users_have_states_of_their_own),
		RULE(a_trace_gets_a_state_once_and_again_behind_each_loss),
		RULE(a_clone_keeps_the_state_that_it_began_with),
		RULE(a_state_that_was_cleared_is_put_again),
		RULE(a_refusal_is_remembered_and_runs_nothing),
		RULE(a_producer_has_a_bounded_number_of_programs),
		RULE(packets_that_cannot_be_applied_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
