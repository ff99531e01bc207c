/*
 * libtributary, driven by an event loop, against a small service over real
 * sockets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/data_source.h>
#include <tributary/tributary.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/tunnel/producer_loop.h"
#include "tests/unit/client/library/fake_service.h"
#include "transport/clock/this_machine.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

struct fixture {
	struct loop *loop;
	struct fake_service s;
	struct producer_loop *p;
	int readies, losses;
	char lost_text[256];

	/* what happened to instances, in words */
	char log[1024];
	bool refuse; /* setup returns false */
	bool write_at_stop;
	bool write_at_flush;
};

/* The source is registered once in a process. */
static struct fixture *fixture;
static struct tributary_instance *last;

struct bytes {
	const void *data;
	size_t len;
};

static void
put_bytes(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	const struct bytes *b = arg;

	tributary_put_encoded(p, b->data, b->len);
}

static bool
write_to(struct tributary_instance *i, const void *data, size_t len)
{
	struct bytes b = { data, len };

	return tributary_instance_write(i, put_bytes, &b);
}

/* The service's id of an instance: fake_service_data_source() says so. */
static int
id_of(const struct tributary_instance *i)
{
	return (int)tributary_instance_session(i) - 90;
}

static void
note(struct fixture *f, const char *fmt, ...)
{
	size_t n = strlen(f->log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->log + n, sizeof(f->log) - n, fmt, ap);
	va_end(ap);
}

static bool
on_setup(struct tributary_instance *i, const void *config, size_t len,
    void *arg, void **context)
{
	struct pb_reader r;
	struct pb_field field;

	note(fixture, "setup:%d ", id_of(i));
	pb_init(&r, config, len);
	while (pb_next(&r, &field))
		if (field.number == 9999)
			note(fixture, "unknown:%d ", (int)field.value);
	if (!fixture->refuse)
		last = i;
	return !fixture->refuse;
}

static void
on_start(struct tributary_instance *i, void *context)
{
	note(fixture, "start:%d ", id_of(i));
}

static bool
on_flush(struct tributary_instance *i, void *context, uint64_t flush_id)
{
	note(fixture, "flush:%d ", id_of(i));
	if (fixture->write_at_flush)
		assert_true(write_to(i, "flushed", 7));
	return true;
}

static void
on_clear(struct tributary_instance *i, void *context)
{
	note(fixture, "clear:%d ", id_of(i));
}

static bool
on_stop(struct tributary_instance *i, void *context)
{
	note(fixture, "stop:%d ", id_of(i));
	if (fixture->write_at_stop)
		assert_true(write_to(i, "last", 4));
	return true;
}

static void
on_destroy(struct tributary_instance *i, void *context)
{
	note(fixture, "destroy:%d ", id_of(i));
	assert_false(write_to(i, "too late", 8));
	if (last == i)
		last = NULL;
}

static const struct tributary_source_ops ops = {
	.size = sizeof(ops),
	.setup = on_setup,
	.start = on_start,
	.flush = on_flush,
	.clear_incremental_state = on_clear,
	.stop = on_stop,
	.destroy = on_destroy,
};

static void
on_changed(void *arg, bool connected, const char *text)
{
	struct fixture *f = arg;

	if (connected) {
		f->readies++;
		return;
	}
	f->losses++;
	snprintf(f->lost_text, sizeof(f->lost_text), "%s", text);
}

static void
add_source(void)
{
	static const struct tributary_source_options o = {
		.size = sizeof(o),
		.name = "test.source",
	};
	static bool added;

	if (!added)
		assert_non_null(tributary_source_add(&o, &ops));
	added = true;
}

static struct fixture *
begin_with(bool tcp, const char *machine_name)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct producer_loop_setup o = {
		.name = "test producer",
		.memory_bytes = 512 * 1024,
		.page_bytes = 16384,
		.machine_name = machine_name,
		.changed = on_changed,
		.arg = f,
	};

	assert_non_null(f);
	fixture = f;
	last = NULL;
	f->loop = loop_new();
	assert_non_null(f->loop);
	fake_service_init(&f->s, f->loop, tcp);
	o.address = &f->s.addr;
	add_source();
	f->p = producer_loop_new(f->loop, &o);
	assert_non_null(f->p);
	return f;
}

static struct fixture *
begin(bool tcp)
{
	return begin_with(tcp, NULL);
}

static void
end(struct fixture *f)
{
	producer_loop_free(f->p, 1);
	fake_service_done(&f->s);
	loop_free(f->loop);
	free(f);
}

static bool
is_ready(void *arg)
{
	struct fixture *f = arg;

	return f->readies > 0 && f->s.has_commands;
}

static void
begin_tracing(struct fixture *f)
{
	assert_true(fake_service_wait(&f->s, is_ready, f));
	fake_service_setup_tracing(&f->s, 64 * 1024, 4096);
	fake_service_data_source(&f->s, 6, 1, "test.source", 7, NULL, 0);
	fake_service_data_source(&f->s, 1, 1, "test.source", 7, NULL, 0);
	assert_true(fake_service_wait_log(&f->s, "started:1"));
}

static void
the_connection_begins_as_a_service_expects_it(void **state)
{
	struct fixture *f = begin(false);

	assert_true(fake_service_wait(&f->s, is_ready, f));
	assert_string_equal(f->s.log,
	    "bind init async reg:test.source incremental ");
	assert_string_equal(f->s.name, "test producer");
	assert_int_equal(f->s.shm_hint, 512 * 1024);
	assert_int_equal(f->s.page_hint, 16384);
	assert_false(f->s.identity.present);
	assert_int_equal(f->readies, 1);
	assert_int_equal(f->losses, 0);
	end(f);
}

static void
a_source_added_later_is_registered_at_once(void **state)
{
	struct fixture *f = begin(false);
	static const struct tributary_source_ops nothing = {
		.size = sizeof(nothing),
	};
	const struct tributary_source_options more = { .size = sizeof(more),
		.name = "more", .no_flush = true };

	assert_true(fake_service_wait(&f->s, is_ready, f));
	assert_non_null(tributary_source_add(&more, &nothing));
	assert_null(tributary_source_add(&more, &nothing));
	assert_true(fake_service_wait_log(&f->s,
	    "reg:more incremental noflush "));
	assert_int_equal(f->readies, 1);
	end(f);
}

static void
over_tcp_it_says_who_it_is(void **state)
{
	struct fixture *f = begin(true);
	char clocks[96], name[256];

	this_machine_clocks(clocks, sizeof(clocks));
	this_machine_name(name, sizeof(name));
	assert_true(fake_service_wait(&f->s, is_ready, f));
	assert_true(f->s.identity.present);
	assert_string_equal(f->s.identity.machine_name, name);
	assert_string_equal(f->s.identity.clocks, clocks);
	end(f);
	f = begin_with(true, "rack 7");
	assert_true(fake_service_wait(&f->s, is_ready, f));
	assert_true(f->s.identity.present);
	assert_string_equal(f->s.identity.machine_name, "rack 7");
	/* A machine that was named is one of its own, on whatever clocks. */
	assert_string_equal(f->s.identity.clocks, "");
	assert_int_equal(f->s.identity.pid, getpid());
	assert_string_equal(f->s.identity.machine_id_hint, clocks);
	end(f);
}

/* A life of an instance, the same in and out of shared memory. */
static void
instance_life(bool tcp)
{
	static const uint8_t unknown[] = { 0xf8, 0xf0, 0x04, 42 }; /* 9999 */
	struct fixture *f = begin(tcp);

	f->write_at_stop = true;
	assert_true(fake_service_wait(&f->s, is_ready, f));
	fake_service_setup_tracing(&f->s, 64 * 1024, 4096);
	fake_service_data_source(&f->s, 6, 1, "test.source", 7, unknown,
	    sizeof(unknown));
	fake_service_data_source(&f->s, 1, 1, "test.source", 7, unknown,
	    sizeof(unknown));
	assert_true(fake_service_wait_log(&f->s, "started:1"));
	assert_string_equal(f->log, "setup:1 unknown:42 start:1 ");

	/* nothing is committed until a chunk is full or a flush comes */
	assert_true(write_to(last, "one", 3));
	assert_false(fake_service_logged(&f->s, "commit"));
	fake_service_flush(&f->s, 12, 1);
	assert_true(fake_service_wait_log(&f->s,
	    "writer:1 into:7 commit commit flushed:12 "));
	assert_int_equal(f->s.memory.n, 1);
	assert_int_equal(f->s.memory.packets[0].buffer, 7);
	assert_memory_equal(f->s.memory.packets[0].data, "one", 3);

	fake_service_clear(&f->s, 1);
	assert_true(write_to(last, "two", 3));
	fake_service_stop(&f->s, 1);
	assert_true(fake_service_wait_log(&f->s,
	    "commit unwriter:1 stopped:1 "));
	assert_string_equal(f->log, "setup:1 unknown:42 start:1 flush:1 "
	    "clear:1 stop:1 destroy:1 ");
	assert_int_equal(f->s.memory.n, 3);
	assert_memory_equal(f->s.memory.packets[1].data, "two", 3);
	assert_memory_equal(f->s.memory.packets[2].data, "last", 4);
	end(f);
}

static void
an_instance_lives_through_shared_memory(void **state)
{
	instance_life(false);
}

static void
an_instance_lives_through_emulation(void **state)
{
	instance_life(true);
}

static void
a_full_chunk_is_committed_without_a_flush(void **state)
{
	struct fixture *f = begin(false);
	uint8_t big[5000];

	memset(big, 'x', sizeof(big));
	begin_tracing(f);
	assert_true(write_to(last, big, sizeof(big)));
	assert_true(fake_service_wait_log(&f->s, "commit"));
	assert_int_equal(f->s.memory.chunks, 1);
	end(f);
}

static void
a_flush_reaches_what_the_source_still_holds(void **state)
{
	struct fixture *f = begin(false);

	f->write_at_flush = true;
	begin_tracing(f);
	fake_service_flush(&f->s, 3, 1);
	assert_true(fake_service_wait_log(&f->s, "flushed:3"));
	assert_int_equal(f->s.memory.n, 1);
	end(f);
}

static void
a_flush_is_answered_even_when_nothing_runs(void **state)
{
	struct fixture *f = begin(false);

	assert_true(fake_service_wait(&f->s, is_ready, f));
	fake_service_flush(&f->s, 5, 1);
	assert_true(fake_service_wait_log(&f->s, "flushed:5"));
	end(f);
}

static void
several_instances_write_apart(void **state)
{
	struct fixture *f = begin(false);
	struct tributary_instance *one, *two;

	begin_tracing(f);
	one = last;
	fake_service_data_source(&f->s, 6, 2, "test.source", 9, NULL, 0);
	fake_service_data_source(&f->s, 1, 2, "test.source", 9, NULL, 0);
	assert_true(fake_service_wait_log(&f->s, "started:2"));
	two = last;
	assert_true(write_to(one, "a", 1));
	assert_true(write_to(two, "b", 1));
	fake_service_stop(&f->s, 1);
	assert_true(fake_service_wait_log(&f->s, "stopped:1"));
	assert_int_equal(f->s.memory.n, 1);
	assert_int_equal(f->s.memory.packets[0].buffer, 7);
	fake_service_flush(&f->s, 1, 2);
	assert_true(fake_service_wait_log(&f->s, "flushed:1"));
	assert_int_equal(f->s.memory.n, 2);
	assert_int_equal(f->s.memory.packets[1].buffer, 9);
	assert_string_equal(f->log, "setup:1 start:1 setup:2 start:2 stop:1 "
	    "destroy:1 flush:2 ");
	end(f);
}

static void
a_refused_instance_keeps_nobody_waiting(void **state)
{
	struct fixture *f = begin(false);

	f->refuse = true;
	begin_tracing(f);
	fake_service_flush(&f->s, 2, 1);
	fake_service_clear(&f->s, 1);
	fake_service_stop(&f->s, 1);
	assert_true(fake_service_wait_log(&f->s, "flushed:2 stopped:1"));
	assert_string_equal(f->log, "setup:1 ");
	/* nor one of a source that we do not have */
	fake_service_data_source(&f->s, 6, 8, "no.such", 7, NULL, 0);
	fake_service_data_source(&f->s, 1, 8, "no.such", 7, NULL, 0);
	fake_service_stop(&f->s, 8);
	assert_true(fake_service_wait_log(&f->s, "started:8 stopped:8"));
	end(f);
}

static void
odd_commands_do_no_harm(void **state)
{
	static const uint8_t unknown[] = { 0xfa, 0x01, 2, 1, 2, 0x08, 1 };
	static const uint8_t cut[] = { 0x1a, 50, 1 };
	struct fixture *f = begin(false);

	begin_tracing(f);
	fake_service_command(&f->s, unknown, sizeof(unknown), -1);
	fake_service_command(&f->s, cut, sizeof(cut), -1);
	fake_service_command(&f->s, NULL, 0, STDIN_FILENO);
	fake_service_setup_tracing(&f->s, 64 * 1024, 4096); /* again */
	fake_service_data_source(&f->s, 6, 1, "test.source", 7, NULL, 0);
	fake_service_data_source(&f->s, 1, 1, "test.source", 7, NULL, 0);
	fake_service_data_source(&f->s, 6, 2, "", 7, NULL, 0);
	fake_service_flush(&f->s, 4, 77);
	assert_true(fake_service_wait_log(&f->s, "flushed:4"));
	assert_string_equal(f->log, "setup:1 start:1 ");
	end(f);
}

static void
memory_that_can_shrink_ends_the_connection(void **state)
{
	struct fixture *f = begin(false);
	struct pb_writer w;
	size_t mark;
	FILE *file = tmpfile();

	assert_true(fake_service_wait(&f->s, is_ready, f));
	assert_int_equal(ftruncate(fileno(file), 65536), 0);
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 3);
	pb_put_uint(&w, 1, 4);
	pb_nest_end(&w, mark);
	fake_service_command(&f->s, w.data, w.len, fileno(file));
	pb_writer_done(&w);
	fclose(file);
	assert_true(fake_service_wait_log(&f->s, "gone"));
	assert_int_equal(f->losses, 1);
	assert_string_not_equal(f->lost_text, "");
	end(f);
}

static void
a_service_that_went_away_is_found_again(void **state)
{
	struct fixture *f = begin(false);
	int i;

	for (i = 0; i < 3; i++) {
		begin_tracing(f);
		assert_true(write_to(last, "x", 1));
		f->readies = 0;
		fake_service_close(&f->s);
		f->s.log[0] = '\0';
		fake_service_listen(&f->s);
		assert_true(fake_service_wait_log(&f->s,
		    "bind init async reg:test.source"));
		assert_null(last);
		assert_string_equal(f->log, "setup:1 start:1 destroy:1 ");
		f->log[0] = '\0';
	}
	assert_int_equal(f->s.connections, 4);
	end(f);
}

static bool
is_lost_thrice(void *arg)
{
	struct fixture *f = arg;

	return f->losses >= 3;
}

static void
a_refusal_is_retried_with_pauses(void **state)
{
	struct fixture *f = begin(false);
	uint64_t from = loop_now_ms();

	f->s.refuse = true;
	assert_true(fake_service_wait(&f->s, is_lost_thrice, f));
	/* the first two pauses, at their shortest */
	assert_true(loop_now_ms() - from >= (100 + 200) * 3 / 4);
	f->s.refuse = false;
	assert_true(fake_service_wait(&f->s, is_ready, f));
	end(f);
}

/* By a service that has no memory for an answer. */
static void
a_source_that_is_refused_without_a_word_is_retried(void **state)
{
	struct fixture *f = begin(false);

	f->s.refuse_sources = true;
	assert_true(fake_service_wait(&f->s, is_lost_thrice, f));
	assert_int_equal(f->readies, 0);
	f->s.refuse_sources = false;
	assert_true(fake_service_wait(&f->s, is_ready, f));
	end(f);
}

static void
it_waits_for_a_service_that_is_not_there_yet(void **state)
{
	struct fixture *f = begin(false);

	fake_service_close(&f->s);
	f->s.log[0] = '\0';
	f->losses = f->readies = 0;
	while (f->losses < 2)
		loop_run_once(f->loop);
	fake_service_listen(&f->s);
	assert_true(fake_service_wait(&f->s, is_ready, f));
	end(f);
}

static void
triggers_are_passed_on(void **state)
{
	struct fixture *f = begin(false);

	tributary_trigger("early"); /* lost */
	assert_true(fake_service_wait(&f->s, is_ready, f));
	tributary_trigger("crash");
	tributary_trigger("jank");
	assert_true(fake_service_wait_log(&f->s, "trigger:crash trigger:jank"));
	assert_false(fake_service_logged(&f->s, "trigger:early"));
	end(f);
}

static void
shutting_down_commits_everything_first(void **state)
{
	struct fixture *f = begin(false);

	f->write_at_stop = true;
	begin_tracing(f);
	assert_true(write_to(last, "x", 1));
	/* All is sent, though the service does not turn meanwhile. */
	producer_loop_free(f->p, 1);
	f->p = NULL;
	assert_string_equal(f->log, "setup:1 start:1 stop:1 destroy:1 ");
	assert_true(fake_service_wait_log(&f->s,
	    "commit unwriter:1 stopped:1 sync"));
	end(f);
}

static void
shutting_down_waits_for_nobody_when_not_connected(void **state)
{
	struct fixture *f = begin(false);
	uint64_t from = loop_now_ms();

	producer_loop_free(f->p, 60000);
	f->p = NULL;
	assert_true(loop_now_ms() - from < 30000);
	end(f);
}

static void
callbacks_may_not_wait(struct tributary_instance *i, void *context)
{
	note(fixture, "%d%d ", tributary_flush(60000),
	    tributary_wait_connected(60000));
	tributary_stop(60000);
	tributary_turn();
	tributary_flush_done(i, 1); /* of no flush */
}

/* Calls from inside of callbacks return, and do nothing. */
static void
a_callback_does_not_turn_the_library(void **state)
{
	static const struct tributary_source_ops waiting = {
		.size = sizeof(waiting),
		.start = callbacks_may_not_wait,
	};
	static const struct tributary_source_options o = {
		.size = sizeof(o),
		.name = "waits",
	};
	struct fixture *f = begin(false);

	assert_non_null(tributary_source_add(&o, &waiting));
	assert_true(fake_service_wait(&f->s, is_ready, f));
	fake_service_setup_tracing(&f->s, 64 * 1024, 4096);
	fake_service_data_source(&f->s, 6, 1, "waits", 7, NULL, 0);
	fake_service_data_source(&f->s, 1, 1, "waits", 7, NULL, 0);
	assert_true(fake_service_wait_log(&f->s, "started:1"));
	assert_string_equal(f->log, "01 ");
	assert_true(tributary_fd() >= 0);
	end(f);
	assert_int_equal(tributary_fd(), -1);
}

static void
freeing_in_the_middle_leaves_nothing(void **state)
{
	struct fixture *f = begin(true);

	begin_tracing(f);
	assert_true(write_to(last, "x", 1));
	producer_loop_free(f->p, 1);
	assert_string_equal(f->log, "setup:1 start:1 stop:1 destroy:1 ");
	f->p = NULL;
	assert_true(fake_service_wait_log(&f->s, "gone"));
	end(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_connection_begins_as_a_service_expects_it),
		cmocka_unit_test(a_source_added_later_is_registered_at_once),
		cmocka_unit_test(over_tcp_it_says_who_it_is),
		cmocka_unit_test(an_instance_lives_through_shared_memory),
		cmocka_unit_test(an_instance_lives_through_emulation),
		cmocka_unit_test(a_full_chunk_is_committed_without_a_flush),
		cmocka_unit_test(a_flush_reaches_what_the_source_still_holds),
		cmocka_unit_test(a_flush_is_answered_even_when_nothing_runs),
		cmocka_unit_test(several_instances_write_apart),
		cmocka_unit_test(a_refused_instance_keeps_nobody_waiting),
		cmocka_unit_test(odd_commands_do_no_harm),
		cmocka_unit_test(memory_that_can_shrink_ends_the_connection),
		cmocka_unit_test(a_service_that_went_away_is_found_again),
		cmocka_unit_test(a_refusal_is_retried_with_pauses),
		cmocka_unit_test(
		    a_source_that_is_refused_without_a_word_is_retried),
		cmocka_unit_test(it_waits_for_a_service_that_is_not_there_yet),
		cmocka_unit_test(triggers_are_passed_on),
		cmocka_unit_test(shutting_down_commits_everything_first),
		cmocka_unit_test(
		    shutting_down_waits_for_nobody_when_not_connected),
		cmocka_unit_test(a_callback_does_not_turn_the_library),
		cmocka_unit_test(freeing_in_the_middle_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
