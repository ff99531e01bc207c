/* The probes as sources of libtributary, and the program's command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/probes/probe_source.h"
#include "client/probes/probes.h"
#include "client/tunnel/producer_loop.h"
#include "protos/data_source_config.pb-c.h"
#include "tests/unit/client/library/fake_service.h"
#include "tests/unit/client/probes/fake_tree.h"
#include "transport/loop/loop.h"

/* ---- command line ---- */

static char said[4096];

static enum flags_verdict
parse(struct probes_options *o, const char *a, const char *b, const char *c)
{
	char *argv[5] = { strdup("tributary-probes"), NULL, NULL, NULL, NULL };
	const char *args[3] = { a, b, c };
	enum flags_verdict v;
	int argc = 1, i;

	for (i = 0; i < 3 && args[i] != NULL; i++)
		argv[argc++] = strdup(args[i]);
	memset(said, 0, sizeof(said));
	v = probes_parse(o, argc, argv, said, sizeof(said));
	if (v == FLAGS_HELP || v == FLAGS_VERSION)
		snprintf(said, sizeof(said), "%s", v == FLAGS_HELP ?
		    probes_flags.help : probes_flags.version);
	for (i = 0; i < argc; i++)
		free(argv[i]);
	return v;
}

static void
the_command_line_is_understood(void **state)
{
	struct probes_options o;

	setenv("PERFETTO_PRODUCER_SOCK_NAME", "/tmp/a,/tmp/b", 1);
	assert_int_equal(parse(&o, NULL, NULL, NULL), FLAGS_RUN);
	assert_string_equal(o.address.text, "/tmp/a");
	assert_int_equal(o.level, LOG_LEVEL_INFO);
	assert_false(o.background);
	assert_int_equal(parse(&o, "--producer-socket", "127.0.0.1:90",
	    "--background"), FLAGS_RUN);
	assert_int_equal(o.address.kind, ADDR_TCP);
	assert_true(o.background);
	assert_int_equal(parse(&o, "--log-level=debug", "--machine-name=m",
	    NULL), FLAGS_RUN);
	assert_int_equal(o.level, LOG_LEVEL_DEBUG);
	unsetenv("PERFETTO_PRODUCER_SOCK_NAME");
	assert_int_equal(parse(&o, NULL, NULL, NULL), FLAGS_RUN);
	assert_int_equal(o.address.kind, ADDR_UNIX);
	assert_int_equal(parse(&o, "--help", NULL, NULL), FLAGS_HELP);
	assert_non_null(strstr(said, "--producer-socket"));
	assert_int_equal(parse(&o, "--version", NULL, NULL), FLAGS_VERSION);
	assert_non_null(strstr(said, TRIBUTARY_VERSION));
}

static void
a_wrong_command_line_is_refused_with_a_sentence(void **state)
{
	static const struct {
		const char *a, *b, *says;
	} t[] = {
		{ "--frobnicate", NULL, "--frobnicate" },
		{ "stray", NULL, "stray" },
		{ "--log-level", "loud", "must be error" },
		{ "--log-level", NULL, "needs a value" },
		{ "--producer-socket", "host:99999", "--producer-socket" },
		{ "-x", NULL, "-x" },
	};
	struct probes_options o;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(parse(&o, t[i].a, t[i].b, NULL), FLAGS_BAD);
		assert_non_null(strstr(said, t[i].says));
	}
	setenv("PERFETTO_PRODUCER_SOCK_NAME", "host:99999", 1);
	assert_int_equal(parse(&o, NULL, NULL, NULL), FLAGS_BAD);
	assert_non_null(strstr(said, "PERFETTO_PRODUCER_SOCK_NAME"));
	unsetenv("PERFETTO_PRODUCER_SOCK_NAME");
}

/* ---- sources ---- */

typedef Perfetto__Protos__DataSourceConfig DataSourceConfig;

/* Registered once in a process. */
static struct probe_sources sources;

struct fixture {
	struct loop *loop;
	struct fake_service s;
	struct tree t;
	struct producer_loop *producer;
};

static struct fixture *
begin(bool tcp)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct producer_loop_setup o = { .name = "probes" };

	assert_non_null(f);
	f->loop = loop_new();
	fake_service_init(&f->s, f->loop, tcp);
	tree_init(&f->t);
	if (sources.loop == NULL)
		assert_int_equal(probe_sources_add(&sources), 0);
	sources.loop = f->loop;
	sources.env = &f->t.env;
	o.address = &f->s.addr;
	f->producer = producer_loop_new(f->loop, &o);
	assert_non_null(f->producer);
	assert_true(fake_service_wait_log(&f->s, "reg:linux.process_stats "
	    "incremental reg:linux.sys_stats "));
	fake_service_setup_tracing(&f->s, 256 * 1024, 4096);
	return f;
}

static void
end(struct fixture *f)
{
	producer_loop_free(f->producer, 1); /* the service does not turn */
	fake_service_done(&f->s);
	tree_done(&f->t);
	loop_free(f->loop);
	free(f);
}

/* Sets up and starts an instance with this config. */
static void
run(struct fixture *f, uint64_t id, const char *name, DataSourceConfig *c)
{
	uint8_t bytes[256];
	char text[32];
	size_t len = perfetto__protos__data_source_config__get_packed_size(c);

	assert_true(len <= sizeof(bytes));
	perfetto__protos__data_source_config__pack(c, bytes);
	fake_service_data_source(&f->s, 6, id, name, 3, bytes, len);
	fake_service_data_source(&f->s, 1, id, name, 3, bytes, len);
	snprintf(text, sizeof(text), "started:%d ", (int)id);
	assert_true(fake_service_wait_log(&f->s, text));
}

/* Unpacks what came so far of this writer into the tree's packets. */
static void
gather(struct fixture *f, uint16_t writer)
{
	size_t i;

	tree_forget(&f->t);
	for (i = 0; i < f->s.memory.n; i++)
		if (f->s.memory.packets[i].writer == writer)
			tree_packet(&f->t, f->s.memory.packets[i].data,
			    f->s.memory.packets[i].len);
}

static void
process_life(bool tcp)
{
	DataSourceConfig c = PERFETTO__PROTOS__DATA_SOURCE_CONFIG__INIT;
	Perfetto__Protos__ProcessStatsConfig pc =
	    PERFETTO__PROTOS__PROCESS_STATS_CONFIG__INIT;
	struct fixture *f = begin(tcp);

	tree_process(&f->t, 10, 1, "a", 5);
	pc.has_scan_all_processes_on_start = true;
	pc.scan_all_processes_on_start = true;
	c.process_stats_config = &pc;
	run(f, 1, "linux.process_stats", &c);
	fake_service_flush(&f->s, 1, 1);
	assert_true(fake_service_wait_log(&f->s, "flushed:1"));
	gather(f, 1);
	assert_int_equal(f->t.n, 1);
	assert_true(f->t.packets[0]->first_packet_on_sequence);
	assert_true(f->t.packets[0]->incremental_state_cleared);
	assert_int_equal(f->t.packets[0]->process_tree->n_processes, 1);
	fake_service_clear(&f->s, 1);
	fake_service_stop(&f->s, 1);
	assert_true(fake_service_wait_log(&f->s, "stopped:1"));
	gather(f, 1);
	assert_int_equal(f->t.n, 2);
	assert_true(f->t.packets[1]->incremental_state_cleared);
	end(f);
}

static void
a_process_tree_reaches_the_service(void **state)
{
	process_life(false);
	process_life(true);
}

struct awaited {
	struct fixture *f;
	size_t packets;
	uint64_t flush_id;
	uint64_t next_ms;
};

/* Asks for what was written until there is enough of it. */
static bool
has_packets(void *arg)
{
	struct awaited *a = arg;

	if (a->f->s.memory.n >= a->packets)
		return true;
	if (loop_now_ms() >= a->next_ms) {
		a->next_ms = loop_now_ms() + 10;
		fake_service_flush(&a->f->s, ++a->flush_id, 1);
	}
	return false;
}

static void
polls_go_on_until_the_stop(void **state)
{
	DataSourceConfig c = PERFETTO__PROTOS__DATA_SOURCE_CONFIG__INIT;
	Perfetto__Protos__SysStatsConfig sc =
	    PERFETTO__PROTOS__SYS_STATS_CONFIG__INIT;
	struct fixture *f = begin(false);
	struct awaited a = { f, 4, 0, 0 };

	tree_file(&f->t, "proc/meminfo", "MemTotal: 9 kB\n");
	sc.has_meminfo_period_ms = true;
	sc.meminfo_period_ms = 10;
	c.sys_stats_config = &sc;
	run(f, 1, "linux.sys_stats", &c);
	assert_true(fake_service_wait(&f->s, has_packets, &a));
	fake_service_stop(&f->s, 1);
	assert_true(fake_service_wait_log(&f->s, "stopped:1"));
	gather(f, 1);
	assert_true(f->t.n >= 4);
	assert_int_equal(f->t.packets[3]->sys_stats->meminfo[0]->value, 9);
	assert_true(f->t.packets[3]->timestamp > f->t.packets[2]->timestamp);
	end(f);
}

static void
sessions_have_probes_of_their_own(void **state)
{
	DataSourceConfig c = PERFETTO__PROTOS__DATA_SOURCE_CONFIG__INIT;
	DataSourceConfig d = PERFETTO__PROTOS__DATA_SOURCE_CONFIG__INIT;
	Perfetto__Protos__ProcessStatsConfig pc =
	    PERFETTO__PROTOS__PROCESS_STATS_CONFIG__INIT;
	Perfetto__Protos__ProcessStatsConfig pd =
	    PERFETTO__PROTOS__PROCESS_STATS_CONFIG__INIT;
	struct fixture *f = begin(false);

	tree_process(&f->t, 10, 1, "a", 5);
	tree_thread(&f->t, 10, 11, "t");
	pc.has_scan_all_processes_on_start = true;
	pc.scan_all_processes_on_start = true;
	pd = pc;
	pd.has_record_thread_names = true;
	pd.record_thread_names = true;
	c.process_stats_config = &pc;
	d.process_stats_config = &pd;
	run(f, 1, "linux.process_stats", &c);
	run(f, 2, "linux.process_stats", &d);
	fake_service_stop(&f->s, 1);
	fake_service_stop(&f->s, 2);
	assert_true(fake_service_wait_log(&f->s, "stopped:2"));
	gather(f, 1);
	assert_int_equal(f->t.packets[0]->process_tree->n_threads, 1);
	gather(f, 2);
	assert_int_equal(f->t.packets[0]->process_tree->n_threads, 2);
	end(f);
}

static void
a_config_that_does_not_parse_is_refused_without_a_wait(void **state)
{
	static const uint8_t bad[] = { 0xba, 0x06, 200 }; /* 103, cut */
	struct fixture *f = begin(false);

	fake_service_data_source(&f->s, 6, 1, "linux.process_stats", 3, bad,
	    sizeof(bad));
	fake_service_data_source(&f->s, 1, 1, "linux.process_stats", 3, bad,
	    sizeof(bad));
	fake_service_flush(&f->s, 1, 1);
	fake_service_clear(&f->s, 1);
	fake_service_stop(&f->s, 1);
	assert_true(fake_service_wait_log(&f->s, "started:1"));
	assert_true(fake_service_wait_log(&f->s, "stopped:1"));
	end(f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_command_line_is_understood),
		cmocka_unit_test(
		    a_wrong_command_line_is_refused_with_a_sentence),
		cmocka_unit_test(a_process_tree_reaches_the_service),
		cmocka_unit_test(polls_go_on_until_the_stop),
		cmocka_unit_test(sessions_have_probes_of_their_own),
		cmocka_unit_test(
		    a_config_that_does_not_parse_is_refused_without_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
