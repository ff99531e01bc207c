/* A producer against a small service over real sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/library/producer.h"
#include "tests/unit/client/library/fake_service.h"
#include "transport/clock/this_machine.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

struct fixture {
	struct loop *loop;
	struct fake_service s;
	struct producer *p;
	struct producer_source source;
	int readies, losses;
	char lost_text[256];

	/* what happened to instances, in words */
	char log[1024];
	bool refuse; /* setup returns NULL */
	bool write_at_stop;
	bool write_at_flush;
	int writers;
	bool done;
};

struct instance {
	struct fixture *f;
	struct producer_instance *pi;
	struct trace_writer *w;
	uint64_t id;
};

static struct instance *last;

static void
note(struct fixture *f, const char *fmt, ...)
{
	size_t n = strlen(f->log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->log + n, sizeof(f->log) - n, fmt, ap);
	va_end(ap);
}

static void *
on_setup(void *arg, struct producer_instance *pi, const uint8_t *config,
    size_t len)
{
	struct fixture *f = arg;
	struct instance *i;
	struct pb_reader r;
	struct pb_field field;
	int k;

	note(f, "setup:%d ", (int)producer_instance_id(pi));
	assert_int_equal(producer_instance_session(pi),
	    90 + producer_instance_id(pi));
	pb_init(&r, config, len);
	while (pb_next(&r, &field))
		if (field.number == 9999)
			note(f, "unknown:%d ", (int)field.value);
	if (f->refuse)
		return NULL;
	i = calloc(1, sizeof(*i));
	assert_non_null(i);
	i->f = f;
	i->pi = pi;
	i->id = producer_instance_id(pi);
	for (k = 0; k < f->writers; k++)
		i->w = producer_instance_writer(pi, TRACE_WRITER_DROP);
	last = i;
	return i;
}

static void
on_start(void *ctx)
{
	struct instance *i = ctx;

	note(i->f, "start:%d ", (int)i->id);
}

static void
on_flush(void *ctx)
{
	struct instance *i = ctx;

	note(i->f, "flush:%d ", (int)i->id);
	if (i->f->write_at_flush)
		assert_true(trace_writer_write(i->w, "flushed", 7));
}

static void
on_clear(void *ctx)
{
	struct instance *i = ctx;

	note(i->f, "clear:%d ", (int)i->id);
}

static void
on_stop(void *ctx)
{
	struct instance *i = ctx;

	note(i->f, "stop:%d ", (int)i->id);
	if (i->f->write_at_stop)
		assert_true(trace_writer_write(i->w, "last", 4));
}

static void
on_destroy(void *ctx)
{
	struct instance *i = ctx;

	note(i->f, "destroy:%d ", (int)i->id);
	if (i->w != NULL)
		trace_writer_write(i->w, "too late", 8);
	if (last == i)
		last = NULL;
	free(i);
}

static void
on_changed(void *arg, enum producer_state state, const char *text)
{
	struct fixture *f = arg;

	switch (state) {
	case PRODUCER_READY:
		f->readies++;
		break;
	case PRODUCER_CONNECTING:
		f->losses++;
		snprintf(f->lost_text, sizeof(f->lost_text), "%s", text);
		break;
	}
}

static struct fixture *
begin_with(bool tcp, const char *machine_name)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct producer_options o = {
		.name = "test producer",
		.shm_bytes = 512 * 1024,
		.page_bytes = 16384,
		.machine_name = machine_name,
		.changed = on_changed,
		.arg = f,
	};

	assert_non_null(f);
	f->loop = loop_new();
	assert_non_null(f->loop);
	fake_service_init(&f->s, f->loop, tcp);
	o.address = &f->s.addr;
	f->p = producer_new(f->loop, &o);
	assert_non_null(f->p);
	f->writers = 1;
	f->source = (struct producer_source){
		.name = "test.source",
		.handles_incremental_state_clear = true,
		.setup = on_setup,
		.start = on_start,
		.flush = on_flush,
		.clear_incremental_state = on_clear,
		.stop = on_stop,
		.destroy = on_destroy,
		.arg = f,
	};
	assert_int_equal(producer_add_source(f->p, &f->source), 0);
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
	producer_free(f->p);
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
	struct producer_source more = { .name = "more", .no_flush = true };

	assert_true(fake_service_wait(&f->s, is_ready, f));
	assert_int_equal(producer_add_source(f->p, &more), 0);
	assert_true(fake_service_wait_log(&f->s, "reg:more noflush "));
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
	assert_true(fake_service_logged(&f->s, "writer:1 into:7 started:1 "));

	/* nothing is committed until a chunk is full or a flush comes */
	assert_true(trace_writer_write(last->w, "one", 3));
	assert_false(fake_service_logged(&f->s, "commit"));
	fake_service_flush(&f->s, 12, 1);
	assert_true(fake_service_wait_log(&f->s, "commit flushed:12 "));
	assert_int_equal(f->s.memory.n, 1);
	assert_int_equal(f->s.memory.packets[0].buffer, 7);
	assert_memory_equal(f->s.memory.packets[0].data, "one", 3);

	fake_service_clear(&f->s, 1);
	assert_true(trace_writer_write(last->w, "two", 3));
	fake_service_stop(&f->s, 1);
	assert_true(fake_service_wait_log(&f->s, "unwriter:1"));
	assert_true(fake_service_logged(&f->s,
	    "commit stopped:1 unwriter:1 "));
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
	assert_true(trace_writer_write(last->w, big, sizeof(big)));
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
	struct instance *one, *two;

	begin_tracing(f);
	one = last;
	fake_service_data_source(&f->s, 6, 2, "test.source", 9, NULL, 0);
	fake_service_data_source(&f->s, 1, 2, "test.source", 9, NULL, 0);
	assert_true(fake_service_wait_log(&f->s, "started:2"));
	two = last;
	assert_true(trace_writer_write(one->w, "a", 1));
	assert_true(trace_writer_write(two->w, "b", 1));
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
writer_ids_are_used_again_only_when_free(void **state)
{
	struct fixture *f = begin(false);

	f->writers = 20;
	begin_tracing(f);
	fake_service_data_source(&f->s, 6, 2, "test.source", 9, NULL, 0);
	fake_service_data_source(&f->s, 1, 2, "test.source", 9, NULL, 0);
	assert_true(fake_service_wait_log(&f->s, "writer:40 into:9 started:2"));
	fake_service_stop(&f->s, 1);
	assert_true(fake_service_wait_log(&f->s, "unwriter:20 "));
	assert_true(fake_service_logged(&f->s, "unwriter:1 "));
	assert_false(fake_service_logged(&f->s, "unwriter:21 "));
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
		assert_true(trace_writer_write(last->w, "x", 1));
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
	static const char *const names[] = { "crash", "jank" };
	struct fixture *f = begin(false);

	producer_activate_triggers(f->p, names, 2); /* lost */
	assert_true(fake_service_wait(&f->s, is_ready, f));
	assert_false(fake_service_logged(&f->s, "trigger"));
	producer_activate_triggers(f->p, names, 2);
	assert_true(fake_service_wait_log(&f->s, "trigger:crash trigger:jank"));
	end(f);
}

static void
on_shutdown(void *arg)
{
	struct fixture *f = arg;

	f->done = true;
}

static bool
is_done(void *arg)
{
	struct fixture *f = arg;

	return f->done;
}

static void
shutting_down_commits_everything_first(void **state)
{
	struct fixture *f = begin(false);

	f->write_at_stop = true;
	begin_tracing(f);
	assert_true(trace_writer_write(last->w, "x", 1));
	producer_shutdown(f->p, on_shutdown, f);
	producer_shutdown(f->p, on_shutdown, f);
	assert_false(f->done);
	assert_true(fake_service_wait(&f->s, is_done, f));
	assert_true(fake_service_logged(&f->s,
	    "commit stopped:1 unwriter:1 sync"));
	assert_int_equal(f->s.memory.n, 2);
	end(f);
}

static void
shutting_down_waits_for_nobody_when_not_connected(void **state)
{
	struct fixture *f = begin(false);
	uint64_t from = loop_now_ms();

	producer_shutdown(f->p, on_shutdown, f);
	assert_true(fake_service_wait(&f->s, is_done, f));
	assert_true(loop_now_ms() - from < PRODUCER_SHUTDOWN_MS);
	end(f);
}

static void
freeing_in_the_middle_leaves_nothing(void **state)
{
	struct fixture *f = begin(true);

	begin_tracing(f);
	assert_true(trace_writer_write(last->w, "x", 1));
	producer_free(f->p);
	assert_string_equal(f->log, "setup:1 start:1 destroy:1 ");
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
		cmocka_unit_test(writer_ids_are_used_again_only_when_free),
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
		cmocka_unit_test(freeing_in_the_middle_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
