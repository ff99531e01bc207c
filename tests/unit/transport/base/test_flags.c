#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "transport/base/flags.h"

#define MAX_ARGS 8

enum form { PLAIN, LONG, JSON };

struct options {
	const char *out;
	enum form form;
	bool quiet;
	const char *taken;
	int id;
	bool maybe;
};

static struct options o;
static struct flags_words words;
static char err[200];

static int
take(void *options, const struct flag *flag, const char *value, char *why,
    size_t size)
{
	struct options *into = options;

	into->taken = value;
	into->id = flag->id;
	into->maybe = flag->kind == FLAG_MAYBE;
	if (value == NULL || strcmp(value, "wrong") != 0)
		return 0;
	snprintf(why, size, "--%s takes none such", flag->name);
	return -1;
}

#define AT(member) .at = offsetof(struct options, member)

static const struct flag table[] = {
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "version", .kind = FLAG_VERSION },
	{ "out", FLAG_TEXT, .letter = 'o', AT(out) },
	{ "quiet", FLAG_BOOL, .letter = 'q', AT(quiet) },
	{ "long", FLAG_CHOICE, .letter = 'l', AT(form), .id = LONG },
	{ "json", FLAG_CHOICE, AT(form), .id = JSON },
	{ "time", FLAG_VALUE, .take = take, .id = 7 },
	{ "times", FLAG_ALIAS, .letter = 't' },
	{ "accept", FLAG_MAYBE, .take = take, .id = 8 },
	{ .name = NULL },
};

static const struct flag without_letters[] = {
	{ "out", FLAG_TEXT, AT(out) },
	{ .name = NULL },
};

static struct flags flags = { .table = table, .help_is_at = "see --help" };

static enum flags_verdict
parse(const char *line)
{
	static char text[200];
	static char *argv[MAX_ARGS + 1];
	char *p, *save = NULL;

	memset(&o, 0, sizeof(o));
	snprintf(text, sizeof(text), "program %s", line);
	words = (struct flags_words){ .argv = argv };
	for (p = strtok_r(text, " ", &save); p != NULL;
	    p = strtok_r(NULL, " ", &save)) {
		assert_true(words.argc < MAX_ARGS);
		argv[words.argc++] = p;
	}
	argv[words.argc] = NULL;
	return flags_parse(&flags, &o, &words, err, sizeof(err));
}

static void
is_refused(const char *line, const char *why)
{
	assert_int_equal(parse(line), FLAGS_BAD);
	assert_string_equal(err, why);
}

static void
each_kind_of_flag_is_taken(void **state)
{
	assert_int_equal(parse("a -qo x --json b"), FLAGS_RUN);
	assert_string_equal(o.out, "x");
	assert_true(o.quiet);
	assert_int_equal(o.form, JSON);
	assert_int_equal(words.argc, 2);
	assert_string_equal(words.argv[0], "a");
	assert_string_equal(words.argv[1], "b");
	assert_int_equal(words.given, 1u << 2 | 1u << 3 | 1u << 5);
	assert_int_equal(parse("--json -l --time=3"), FLAGS_RUN);
	assert_int_equal(o.form, LONG);
	assert_string_equal(o.taken, "3");
	assert_int_equal(o.id, 7);
	assert_int_equal(parse("--accept -- -q"), FLAGS_RUN);
	assert_true(o.maybe && o.taken == NULL && !o.quiet);
	assert_int_equal(words.argc, 1);
	assert_int_equal(parse("--accept=x"), FLAGS_RUN);
	assert_string_equal(o.taken, "x");
	assert_int_equal(parse("--help --bogus"), FLAGS_HELP);
	assert_int_equal(parse("--version"), FLAGS_VERSION);
}

static void
an_alias_and_a_beginning_are_names(void **state)
{
	assert_int_equal(parse("--times 3"), FLAGS_RUN);
	assert_int_equal(o.id, 7);
	assert_int_equal(parse("-t 5"), FLAGS_RUN);
	assert_int_equal(o.id, 7);
	assert_string_equal(o.taken, "5");
	assert_int_equal(parse("--tim 4"), FLAGS_RUN);
	assert_string_equal(o.taken, "4");
	assert_int_equal(parse("--qui"), FLAGS_RUN);
	assert_true(o.quiet);
}

static void
wrong_flags_are_named(void **state)
{
	is_refused("--outt=x", "there is no flag --outt; did you mean --out?");
	is_refused("--zzzzzz", "there is no flag --zzzzzz; see --help");
	is_refused("-qx", "there is no flag -x; see --help");
	is_refused("--out", "--out wants a value");
	is_refused("-qo", "-qo wants a value");
	is_refused("--quiet=x", "--quiet takes no value");
	is_refused("--time wrong", "--time takes none such");
}

static void
a_program_without_letters_is_told_the_whole_word(void **state)
{
	flags.table = without_letters;
	flags.flags_first = true;
	is_refused("-outt", "there is no flag -outt; did you mean --out?");
	is_refused("-x", "there is no flag -x; see --help");
	assert_int_equal(parse("word --bogus"), FLAGS_RUN);
	assert_int_equal(words.argc, 2);
	flags.table = table;
	flags.flags_first = false;
}

static void
a_program_may_have_words_of_its_own(void **state)
{
	flags.no_such_flag = " is no flag";
	flags.no_value = " needs a value";
	is_refused("--outt=x", "--outt=x is no flag");
	is_refused("--out", "--out needs a value");
	flags.no_such_flag = flags.no_value = NULL;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_flag_is_taken),
		cmocka_unit_test(an_alias_and_a_beginning_are_names),
		cmocka_unit_test(wrong_flags_are_named),
		cmocka_unit_test(
		    a_program_without_letters_is_told_the_whole_word),
		cmocka_unit_test(a_program_may_have_words_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
