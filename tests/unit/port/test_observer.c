#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdbool.h>

#include "tests/unit/port/port_fixture.h"
#include "service/port/observer.h"

#define ONE_SOURCE "buffers { size_kb: 64 } data_sources { config { name: "   \
	"\"src\" } } "

static void
a_question_is_a_list_packed_or_not(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		bool ok;
		uint32_t mask;
	} cases[] = {
		{ "", 0, true, 0 },
		{ "\x08\x01", 2, true, 1 },
		{ "\x08\x01\x08\x04", 4, true, 5 },
		{ "\x0a\x02\x01\x02", 4, true, 3 },
		{ "\x0a\x00", 2, true, 0 },
		{ "\x10\x07\x08\x02", 4, true, 2 },
		{ "\x0a\x01\x80", 3, false, 0 },
		{ "\x0d\1\0\0\0", 5, false, 0 },
		{ "\x08", 1, false, 0 },
	};
	uint32_t mask;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(observer_parse(
		    (const uint8_t *)cases[i].bytes, cases[i].len, &mask),
		    cases[i].ok);
		if (cases[i].ok)
			assert_int_equal(mask, cases[i].mask);
	}
}

/* The events of one kind that a client got for a call. */
static size_t
events(const struct client *c, uint64_t call, uint32_t kind)
{
	struct pb_reader r;
	struct pb_field f, g;
	size_t i, n = 0;

	for (i = 0; i < c->n_replies; i++) {
		if (c->replies[i].request != call ||
		    !reply_field(&c->replies[i], 1, &f))
			continue;
		pb_init(&r, f.data, f.len);
		while (pb_next(&r, &g))
			n += g.number == kind;
	}
	return n;
}

static void
only_what_was_asked_for_is_told(void **state)
{
	struct ports *p = *state;
	struct client prod, all, none;
	uint64_t a, n;

	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&all, p, CONSUMER);
	client_open(&none, p, CONSUMER);
	a = client_send(&all, C_OBSERVE, args_uint(1, OBSERVE_INSTANCES |
	    OBSERVE_ALL_STARTED | OBSERVE_CLONE_TRIGGER), -1);
	n = client_send(&none, C_OBSERVE, args_uint(1, OBSERVE_CLONE_TRIGGER),
	    -1);
	(void)client_enable(&all, ONE_SOURCE "trigger_config { trigger_mode: "
	    "CLONE_SNAPSHOT trigger_timeout_ms: 3600000 triggers { name: "
	    "\"snap\" } }", -1);
	client_call(&all, C_CAPABILITIES, NULL);
	assert_int_equal(events(&all, a, 1), 1);
	assert_int_equal(events(&all, a, 2), 1);
	assert_int_equal(events(&all, a, 3), 0);
	assert_true(client_call(&prod, P_TRIGGERS,
	    args_string(1, "snap"))->ok);
	while (events(&all, a, 3) == 0)
		client_turn(&all);
	/* The other has no session: nothing is for it. */
	client_call(&none, C_CAPABILITIES, NULL);
	assert_int_equal(client_count(&none, n), 0);
	client_close(&prod);
	client_close(&all);
	client_close(&none);
}

static void
what_happened_before_the_question_is_told(void **state)
{
	struct ports *p = *state;
	struct client prod, c;
	uint64_t call;

	client_open(&prod, p, PRODUCER);
	client_initialize(&prod, "p");
	client_register(&prod, "src");
	client_open(&c, p, CONSUMER);
	(void)client_enable(&c, ONE_SOURCE, -1);
	client_call(&c, C_CAPABILITIES, NULL);
	call = client_send(&c, C_OBSERVE, args_uint(1, 3), -1);
	client_call(&c, C_CAPABILITIES, NULL);
	assert_int_equal(events(&c, call, 1), 1);
	assert_int_equal(events(&c, call, 2), 1);
	/* And that a source went: */
	client_close(&prod);
	while (events(&c, call, 1) < 2)
		client_turn(&c);
	client_close(&c);
}

#define T(name) cmocka_unit_test_setup_teardown(name, ports_setup, ports_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_a_list_packed_or_not),
		T(only_what_was_asked_for_is_told),
		T(what_happened_before_the_question_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
