#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protos/control.pb-c.h"
#include "service/model/model.h"
#include "tests/unit/service/port/port_fixture.h"
#include "transport/wire/frame.h"

enum { M_QUERY_MACHINES = 1, M_QUERY_PRODUCERS = 6 };

static struct machine *
add_machine(struct ports *p, uint32_t id, const char *name)
{
	const struct machine_claim claim = { .id = id, .name = name };
	struct machine *m = machine_claim(p->service->machines, &claim);

	assert_non_null(m);
	return m;
}

/* All parts of the answer together. */
static Tributary__QueryMachinesReply *
ask(struct client *c, size_t *parts)
{
	uint64_t request = client_send(c, M_QUERY_MACHINES, NULL, -1);
	Tributary__QueryMachinesReply *all;
	const struct reply *r;
	struct pb_writer w;

	pb_writer_init(&w);
	*parts = 0;
	do {
		r = client_wait(c, request, (*parts)++);
		assert_true(r->ok);
		assert_true(r->len < FRAME_MAX_BYTES - 1024);
		pb_put_raw(&w, r->msg, r->len);
	} while (r->more);
	all = tributary__query_machines_reply__unpack(NULL, w.len, w.data);
	assert_non_null(all);
	pb_writer_done(&w);
	return all;
}

static void
the_host_comes_first(void **state)
{
	Tributary__QueryMachinesReply *all;
	struct ports *p = *state;
	struct client c, producer;
	size_t parts;

	client_open(&producer, p, PRODUCER);
	client_initialize(&producer, "probes");
	client_register(&producer, "a");
	client_register(&producer, "b");
	client_open(&c, p, CONTROL);
	all = ask(&c, &parts);
	assert_int_equal(parts, 1);
	assert_int_equal(all->n_machines, 1);
	assert_int_equal(all->machines[0]->id, 0);
	assert_int_equal(all->machines[0]->reach,
	    TRIBUTARY__MACHINE_STATE__REACH__HOST);
	assert_int_equal(all->machines[0]->state,
	    TRIBUTARY__MACHINE_STATE__STATE__CONNECTED);
	assert_int_equal(all->machines[0]->producers, 1);
	assert_int_equal(all->machines[0]->data_sources, 2);
	assert_true(all->machines[0]->system_info.len > 0);
	assert_true(all->now_ns > 1600000000ull * 1000000000);
	tributary__query_machines_reply__free_unpacked(all, NULL);
	client_close(&producer);
	client_close(&c);
}

static void
a_machine_is_told_with_all_that_is_known(void **state)
{
	Tributary__QueryMachinesReply *all;
	struct ports *p = *state;
	struct machine *m = add_machine(p, 77, "car-7");
	const Tributary__MachineState *t;
	struct client c;
	size_t parts;

	machine_ref(m);
	m->contact.reach = MACHINE_LINK;
	m->contact.cut = true;
	m->contact.cut_since_ns = 5;
	m->contact.reconnects = 3;
	m->contact.bytes_unpacked = 1000;
	snprintf(m->contact.address, sizeof(m->contact.address), "there");
	m->contact.losses[2].packets = 12;
	m->contact.losses[5].bytes = 1;
	m->clock.known = true;
	m->clock.offset_ns = -123456789012;
	m->clock.uncertainty_ns = 42;
	client_open(&c, p, CONTROL);
	all = ask(&c, &parts);
	assert_int_equal(all->n_machines, 2);
	t = all->machines[1];
	assert_int_equal(t->id, 77);
	assert_string_equal(t->name, "car-7");
	assert_int_equal(t->reach, TRIBUTARY__MACHINE_STATE__REACH__LINK);
	assert_int_equal(t->state, TRIBUTARY__MACHINE_STATE__STATE__CUT);
	assert_int_equal(t->cut_since_ns, 5);
	assert_int_equal(t->reconnects, 3);
	assert_int_equal(t->bytes_unpacked, 1000);
	assert_string_equal(t->address, "there");
	assert_true(t->clock_offset_ns == -123456789012);
	assert_int_equal(t->clock_uncertainty_ns, 42);
	assert_int_equal(t->n_losses, 2);
	assert_int_equal(t->losses[0]->cause, 2);
	assert_int_equal(t->losses[0]->packets, 12);
	assert_int_equal(t->losses[1]->cause, 5);
	tributary__query_machines_reply__free_unpacked(all, NULL);
	client_close(&c);
	machine_unref(m);
}

static void
many_machines_come_in_parts_that_clients_can_take(void **state)
{
	Tributary__QueryMachinesReply *all;
	struct ports *p = *state;
	uint8_t info[2048] = { 0 };
	char name[64];
	struct client c;
	size_t parts, i, seen = 0;

	for (i = 1; i <= 1000; i++) {
		struct machine *m;

		snprintf(name, sizeof(name), "device-%zu", i);
		m = add_machine(p, (uint32_t)i, name);
		assert_int_equal(machine_set_system_info(m, info,
		    sizeof(info)), 0);
	}
	client_open(&c, p, CONTROL);
	all = ask(&c, &parts);
	assert_true(parts > 10);
	assert_int_equal(all->n_machines, 1001);
	for (i = 0; i < all->n_machines; i++)
		seen += all->machines[i]->id;
	assert_int_equal(seen, 1000 * 1001 / 2);
	tributary__query_machines_reply__free_unpacked(all, NULL);
	client_close(&c);
}

static void
questions_follow_each_other_and_nonsense_is_refused(void **state)
{
	Tributary__QueryMachinesReply *all;
	struct ports *p = *state;
	struct client c;
	size_t parts;

	client_open(&c, p, CONTROL);
	all = ask(&c, &parts);
	tributary__query_machines_reply__free_unpacked(all, NULL);
	all = ask(&c, &parts);
	assert_int_equal(all->n_machines, 1);
	tributary__query_machines_reply__free_unpacked(all, NULL);
	assert_false(client_call(&c, M_QUERY_MACHINES,
	    args_string(0, "no field"))->ok);
	client_close(&c);
}

static Tributary__QueryProducersReply *
ask_producers(struct client *c, size_t *parts)
{
	uint64_t request = client_send(c, M_QUERY_PRODUCERS, NULL, -1);
	Tributary__QueryProducersReply *all;
	const struct reply *r;
	struct pb_writer w;

	pb_writer_init(&w);
	*parts = 0;
	do {
		r = client_wait(c, request, (*parts)++);
		assert_true(r->ok);
		assert_true(r->len < FRAME_MAX_BYTES - 1024);
		pb_put_raw(&w, r->msg, r->len);
	} while (r->more);
	all = tributary__query_producers_reply__unpack(NULL, w.len, w.data);
	assert_non_null(all);
	pb_writer_done(&w);
	return all;
}

static void
producers_are_told_with_what_they_wrote_and_lost(void **state)
{
	Tributary__QueryProducersReply *all;
	struct ports *p = *state;
	const Tributary__ProducerState *t;
	struct client c, producer;
	struct producer *first;
	size_t parts;

	client_open(&c, p, CONTROL);
	all = ask_producers(&c, &parts);
	assert_int_equal(all->n_producers, 0);
	tributary__query_producers_reply__free_unpacked(all, NULL);
	client_open(&producer, p, PRODUCER);
	client_initialize(&producer, "probes");
	client_register(&producer, "a");
	client_register(&producer, "b");
	first = TAILQ_FIRST(&p->service->producers);
	first->wrote.bytes = 4096;
	first->wrote.packets = 12;
	first->wrote.lost = 3;
	all = ask_producers(&c, &parts);
	assert_int_equal(all->n_producers, 1);
	t = all->producers[0];
	assert_string_equal(t->name, "probes");
	assert_int_equal(t->id, first->id);
	assert_int_equal(t->machine_id, 0);
	assert_int_equal(t->data_sources, 2);
	assert_int_equal(t->instances, 0);
	assert_int_equal(t->bytes, 4096);
	assert_int_equal(t->packets, 12);
	assert_int_equal(t->lost, 3);
	tributary__query_producers_reply__free_unpacked(all, NULL);
	client_close(&producer);
	client_close(&c);
}

static void
the_kernels_losses_are_passed_on_and_nonsense_is_not(void **state)
{
	static const uint8_t said[] = {
		0xca, 0x3e, 18, /* tributary_kernel_losses */
		0x0a, 4, 0x08, 0, 0x10, 7, /* processor 0: 7 */
		0x0a, 4, 0x08, 3, 0x10, 5, /* processor 3: 5 */
		0x08, 1, 0x0a, 2, 0x08, 0xff, /* and nonsense */
	};
	Tributary__QueryProducersReply *all;
	const Tributary__KernelLost *lost;
	struct ports *p = *state;
	struct client c, producer;
	struct data_source *source;
	size_t parts;

	client_open(&producer, p, PRODUCER);
	client_initialize(&producer, "probes");
	client_register(&producer, "linux.ftrace");
	client_open(&c, p, CONTROL);
	all = ask_producers(&c, &parts);
	assert_null(all->producers[0]->kernel_lost);
	tributary__query_producers_reply__free_unpacked(all, NULL);
	source = TAILQ_FIRST(&TAILQ_FIRST(&p->service->producers)->data_sources);
	assert_int_equal(source_descriptor_read(&source->descriptor, said,
	    sizeof(said)), 0);
	all = ask_producers(&c, &parts);
	lost = all->producers[0]->kernel_lost;
	assert_non_null(lost);
	assert_int_equal(lost->events, 12);
	assert_int_equal(lost->n_cpus, 2);
	assert_int_equal(lost->cpus[0], 0);
	assert_int_equal(lost->cpus[1], 3);
	tributary__query_producers_reply__free_unpacked(all, NULL);
	client_close(&producer);
	client_close(&c);
}

static void
many_producers_come_in_parts(void **state)
{
	enum { N = 60 };
	Tributary__QueryProducersReply *all;
	static struct client c, producers[N];
	struct ports *p = *state;
	struct producer *producer;
	static char name[2000];
	size_t i, parts;

	memset(name, 'x', sizeof(name) - 1);
	for (i = 0; i < N; i++) {
		client_open(&producers[i], p, PRODUCER);
		client_initialize(&producers[i], "p");
	}
	TAILQ_FOREACH(producer, &p->service->producers, link) {
		free(producer->name);
		producer->name = strdup(name);
		assert_non_null(producer->name);
	}
	client_open(&c, p, CONTROL);
	all = ask_producers(&c, &parts);
	assert_true(parts > 1);
	assert_int_equal(all->n_producers, N);
	for (i = 1; i < N; i++)
		assert_true(all->producers[i]->id != all->producers[i - 1]->id);
	tributary__query_producers_reply__free_unpacked(all, NULL);
	for (i = 0; i < N; i++)
		client_close(&producers[i]);
	client_close(&c);
}

int
main(void)
{
#define T(name) \
	cmocka_unit_test_setup_teardown(name, ports_setup, ports_teardown)
	const struct CMUnitTest tests[] = {
		T(the_host_comes_first),
		T(a_machine_is_told_with_all_that_is_known),
		T(many_machines_come_in_parts_that_clients_can_take),
		T(questions_follow_each_other_and_nonsense_is_refused),
		T(producers_are_told_with_what_they_wrote_and_lost),
		T(the_kernels_losses_are_passed_on_and_nonsense_is_not),
		T(many_producers_come_in_parts),
	};

	return cmocka_run_group_tests_name("control_port", tests, NULL, NULL);
}
