/* Categories that a config wants, and their bits while instances come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/data_source.h>
#include <cmocka.h>

#include "client/tracing/event/categories.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Fields of TrackEventConfig; of the descriptors below, too. */
#define DISABLED      1
#define ENABLED       2
#define DISABLED_TAGS 3
#define ENABLED_TAGS  4

TRIBUTARY_CATEGORY(defined, "defined here", "Of the test", "a, b");

static struct tributary_category
category(const char *name, const char *tags)
{
	struct tributary_category c = { 0, name, "", tags, NULL };

	return c;
}

/*
 * rules: field, text, field, text, ...; 0.  Whether a category of this name and
 * these tags is wanted.
 */
static bool
wanted(const char *name, const char *tags, ...)
{
	struct tributary_category c = category(name, tags);
	struct pb_writer w;
	va_list ap;
	bool answer;
	int field;

	pb_writer_init(&w);
	va_start(ap, tags);
	while ((field = va_arg(ap, int)) != 0)
		pb_put_string(&w, (uint32_t)field, va_arg(ap, const char *));
	va_end(ap);
	answer = category_is_wanted(&c, w.data, w.len);
	pb_writer_done(&w);
	return answer;
}

static void
nothing_that_matches_enables(void **state)
{
	assert_true(wanted("net", "", 0));
	assert_true(wanted("net", NULL, 0));
	assert_true(wanted("net", "io", 0));
	assert_true(wanted("net", "", ENABLED, "disk", 0));
	assert_true(wanted("net", "", DISABLED, "disk", 0));
}

static void
slow_and_debug_are_off_unless_they_are_asked_for(void **state)
{
	assert_false(wanted("net", "slow", 0));
	assert_false(wanted("net", "debug", 0));
	assert_false(wanted("net", "io, debug", 0));
	assert_false(wanted("net", "debug,io", 0));
	assert_true(wanted("net", "slower", 0));
	assert_true(wanted("slow", "", 0));
	assert_true(wanted("net", "slow", ENABLED, "net", 0));
	assert_true(wanted("net", "slow", ENABLED_TAGS, "slow", 0));
	/* Any list of disabled tags replaces these two. */
	assert_true(wanted("net", "slow", DISABLED_TAGS, "io", 0));
	assert_false(wanted("net", "slow", DISABLED_TAGS, "slow", 0));
	/* They go before patterns. */
	assert_false(wanted("net", "slow", ENABLED, "net*", 0));
	assert_false(wanted("net", "slow", ENABLED_TAGS, "sl*", 0));
}

static void
names_go_before_tags_and_enabled_ones_before_disabled_ones(void **state)
{
	assert_false(wanted("net", "", DISABLED, "net", 0));
	assert_true(wanted("net", "", DISABLED, "net", ENABLED, "net", 0));
	assert_true(wanted("net", "io", DISABLED, "net", ENABLED_TAGS, "io",
	    0));
	assert_true(wanted("net", "io", DISABLED_TAGS, "io", ENABLED, "net",
	    0));
	assert_true(wanted("net", "io", DISABLED_TAGS, "io", ENABLED_TAGS,
	    "io", 0));
	assert_false(wanted("net", "io", DISABLED_TAGS, "io", 0));
	assert_false(wanted("net", "a,io", DISABLED_TAGS, "b", DISABLED_TAGS,
	    "io", 0));
	assert_true(wanted("net", "a,b", DISABLED_TAGS, "a", ENABLED_TAGS, "b",
	    0));
}

static void
patterns_end_with_a_star_and_go_behind_whole_names(void **state)
{
	assert_false(wanted("net", "", DISABLED, "*", 0));
	assert_false(wanted("net.low", "", DISABLED, "net*", 0));
	assert_false(wanted("net", "", DISABLED, "net*", 0));
	assert_true(wanted("ne", "", DISABLED, "net*", 0));
	assert_true(wanted("net.low", "", DISABLED, "*", ENABLED, "net*", 0));
	assert_true(wanted("net.low", "", DISABLED, "*", ENABLED, "net.low",
	    0));
	/* A whole name that is disabled, against a pattern that enables. */
	assert_false(wanted("net", "", DISABLED, "net", ENABLED, "n*", 0));
	assert_false(wanted("net", "", DISABLED, "net", ENABLED, "*", 0));
	assert_true(wanted("net", "", DISABLED, "n*", ENABLED, "*", 0));
	assert_true(wanted("net", "io", DISABLED, "*", ENABLED_TAGS, "i*", 0));
	assert_false(wanted("net", "io", DISABLED_TAGS, "i*", 0));
	assert_false(wanted("net", "io", DISABLED_TAGS, "io", ENABLED_TAGS,
	    "i*", 0));
	/* No star: the whole name. */
	assert_true(wanted("network", "", DISABLED, "net", 0));
	assert_true(wanted("net", "", DISABLED, "network", 0));
	assert_true(wanted("net", "", DISABLED, "", 0));
}

static void
configs_that_cannot_be_read_change_nothing(void **state)
{
	struct tributary_category c = category("net", "");

	assert_true(category_is_wanted(&c, NULL, 0));
	assert_true(category_is_wanted(&c, (const uint8_t *)"\x0a\x7fne", 4));
	assert_true(category_is_wanted(&c, (const uint8_t *)"\x08\x01", 2));
}

/* ---- Bits ---- */

static size_t changes, removals;

static void
changed(void)
{
	changes++;
}

static void
removed(void)
{
	removals++;
}

#define WITHOUT_NET "\x0a\x03net"

static void
bits_follow_instances_and_categories(void **state)
{
	struct tributary_category net = category("net", ""),
	    disk = category("disk", "");
	uint8_t config[8];
	size_t len = sizeof(WITHOUT_NET) - 1;

	memcpy(config, WITHOUT_NET, len);
	tributary_category_add(&net);
	assert_true(net.enabled == 0);
	categories_start(0, NULL, 0);
	categories_start(31, config, len);
	assert_true(net.enabled == 1);
	assert_true(tributary_category_defined.enabled ==
	    (1u | (uint64_t)1 << 31));
	/* Added while they run. */
	tributary_category_add(&disk);
	assert_true(disk.enabled == (1u | (uint64_t)1 << 31));
	categories_stop(0);
	assert_true(net.enabled == 0);
	assert_true(disk.enabled == (uint64_t)1 << 31);
	/* The slot's next instance has another config. */
	categories_start(0, config, len);
	assert_true(net.enabled == 0);
	categories_stop(31);
	categories_start(31, NULL, 0);
	assert_true(net.enabled == (uint64_t)1 << 31);
	/* Gone, and forgotten. */
	tributary_category_remove(&disk);
	categories_stop(0);
	categories_stop(31);
	assert_true(net.enabled == 0);
	assert_true(disk.enabled == (1u | (uint64_t)1 << 31));
	tributary_category_remove(&net);
	tributary_category_remove(&net);
}

static void
an_added_category_begins_without_the_bits_it_had(void **state)
{
	struct tributary_category net = category("net", "");

	net.enabled = 4;
	tributary_category_add(&net);
	assert_true(net.enabled == 0);
	tributary_category_remove(&net);
}

static void
hooks_hear_of_categories_that_come_and_go(void **state)
{
	struct tributary_category net = category("net", "");

	categories_set_hooks(changed, removed);
	tributary_category_add(&net);
	assert_int_equal(changes, 1);
	assert_int_equal(removals, 0);
	tributary_category_remove(&net);
	assert_int_equal(changes, 1);
	assert_int_equal(removals, 1);
	categories_set_hooks(NULL, NULL);
}

static void
after_a_fork_no_instance_is_known(void **state)
{
	struct tributary_category net = category("net", "");
	uint64_t restart = (uint64_t)1 << 63;

	tributary_category_add(&net);
	categories_start(3, NULL, 0);
	categories_after_fork(restart);
	assert_true(net.enabled == restart);
	categories_forget(restart);
	assert_true(net.enabled == 0);
	tributary_category_remove(&net);
	/* One that is added later is in none. */
	tributary_category_add(&net);
	assert_true(net.enabled == 0);
	tributary_category_remove(&net);
}

/* ---- The descriptor ---- */

static void
assert_text(const struct pb_field *f, uint32_t number, const char *text)
{
	assert_int_equal(f->number, number);
	assert_int_equal(f->len, strlen(text));
	assert_memory_equal(f->data, text, f->len);
}

static void
the_descriptor_has_names_descriptions_and_tags(void **state)
{
	struct pb_reader r, in;
	struct pb_field f;
	size_t len;
	uint8_t *data = categories_descriptor(&len);

	assert_non_null(data);
	pb_init(&r, data, len);
	/* DataSourceDescriptor.track_event_descriptor */
	assert_true(pb_next(&r, &f) && f.number == 6);
	assert_false(pb_next(&r, &(struct pb_field){ 0 }));
	pb_init(&r, f.data, f.len);
	assert_true(pb_next(&r, &f) && f.number == 1);
	assert_false(pb_next(&r, &(struct pb_field){ 0 }));
	pb_init(&in, f.data, f.len);
	assert_true(pb_next(&in, &f));
	assert_text(&f, 1, "defined here");
	assert_true(pb_next(&in, &f));
	assert_text(&f, 2, "Of the test");
	assert_true(pb_next(&in, &f));
	assert_text(&f, 3, "a");
	assert_true(pb_next(&in, &f));
	assert_text(&f, 3, "b");
	assert_false(pb_next(&in, &f));
	free(data);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_that_matches_enables),
		cmocka_unit_test(
		    slow_and_debug_are_off_unless_they_are_asked_for),
		cmocka_unit_test(
		    names_go_before_tags_and_enabled_ones_before_disabled_ones),
		cmocka_unit_test(
		    patterns_end_with_a_star_and_go_behind_whole_names),
		cmocka_unit_test(configs_that_cannot_be_read_change_nothing),
		cmocka_unit_test(bits_follow_instances_and_categories),
		cmocka_unit_test(
		    an_added_category_begins_without_the_bits_it_had),
		cmocka_unit_test(hooks_hear_of_categories_that_come_and_go),
		cmocka_unit_test(after_a_fork_no_instance_is_known),
		cmocka_unit_test(
		    the_descriptor_has_names_descriptions_and_tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
