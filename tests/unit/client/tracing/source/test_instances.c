/* As many sessions at once as there may be, each with a state of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/data_source.h>
#include <cmocka.h>

#include "client/tracing/source/endpoint.h"
#include "client/tracing/source/registry.h"

#define MOST TRIBUTARY_INSTANCES_MAX

/* The config is one byte, which session it is of. */
struct session {
	uint8_t number;
	int written;
};

static bool
setup(struct tributary_instance *i, const void *config, size_t len, void *arg,
    void **context)
{
	struct session *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_int_equal(len, 1);
	s->number = *(const uint8_t *)config;
	*context = s;
	return true;
}

static void
destroy(struct tributary_instance *i, void *context)
{
	free(context);
}

static const struct tributary_source_ops ops = { .size = sizeof(ops),
	.setup = setup, .destroy = destroy };

static void
put(struct tributary_packet *p, struct tributary_instance *i, void *context,
    bool first, void *arg)
{
	struct session *s = context;

	assert_true(first == (s->written == 0));
	s->written++;
	tributary_put_uint(p, 8, s->number);
}

static void
wake(void *arg)
{
}

static void
test_thirty_two_sessions(void **state)
{
	struct tributary_source_options o = { .size = sizeof(o),
		.name = "test.instances" };
	struct tributary_source *source = tributary_source_add(&o, &ops);
	struct shm *shm = shm_new(1024 * 1024, 4096);
	struct chunk_memory *m = chunk_memory_new(shm, wake, NULL);
	struct endpoint service = { .adopts = true };
	uint8_t number = 0;
	struct instance_setup s = { .endpoint = &service, .memory = m,
	    .buffer = 1, .config = &number, .config_len = 1 };
	struct tributary_instance *all[MOST];
	struct session *of;

	assert_true(MOST >= 32);
	for (number = 0; number < MOST; number++) {
		all[number] = instance_new(source, &s);
		assert_non_null(all[number]);
		instance_start(all[number]);
	}
	assert_null(instance_new(source, &s));
	tributary_source_write(source, put, NULL);
	instance_free(all[7]);
	tributary_source_write(source, put, NULL);
	number = 7;
	all[7] = instance_new(source, &s);
	assert_non_null(all[7]);
	instance_start(all[7]);
	tributary_source_write(source, put, NULL);
	for (number = 0; number < MOST; number++) {
		of = all[number]->context;
		assert_int_equal(of->number, number);
		assert_int_equal(of->written, number == 7 ? 1 : 3);
		assert_int_equal(tributary_instance_dropped(all[number]), 0);
		instance_free(all[number]);
	}
	chunk_memory_close(m);
	chunk_memory_unref(m);
}

/* As of a caller that has set its members and forgotten the size. */
static void
test_structs_without_a_size(void **state)
{
	struct tributary_source_options o = { .name = "test.no_size" };
	struct tributary_options start = { .name = "test" };

	assert_null(tributary_source_add(&o, &ops));
	o.size = sizeof(o);
	assert_non_null(tributary_source_add(&o, &ops));
	o.name = NULL;
	assert_null(tributary_source_add(&o, &ops));
	o.name = "";
	assert_null(tributary_source_add(&o, &ops));
	assert_int_equal(tributary_start(&start), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thirty_two_sessions),
		cmocka_unit_test(test_structs_without_a_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
