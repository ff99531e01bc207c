#define PCRE2_CODE_UNIT_WIDTH 8
#include "service/config/name_filter.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/base/failure.h"
#include "transport/base/log.h"

/*
 * Limits of patterns and matches.  Names are at most a few hundred bytes, so
 * honest patterns take microseconds and stay far below all limits.  A hostile
 * pattern ends within a millisecond or two and within MATCH_HEAP_KB.  As there
 * may be many producers to test, slow tests (SLOW_NS or more) may take
 * SLOW_ALL_NS in all for each pattern.
 */
#define COMPILED_MAX  (16u * 1024u) /* bytes of one compiled pattern */
#define NEST_MAX      50u           /* brackets within brackets */
#define MATCH_STEPS   20000u
#define MATCH_DEPTH   10000u
#define MATCH_HEAP_KB 1024u
#define SLOW_NS       50000u
#define SLOW_ALL_NS   2000000u /* for each pattern of a filter */

/*
 * Patterns match bytes: names come from peers and need not be UTF-8, so a
 * pattern may not switch UTF on, which makes \C pointless.
 */
#define COMPILE_OPTIONS                                                        \
	(PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_UTF |                \
	    PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C)

struct name_filter {
	char **names; /* owned, each too */
	size_t n_names;
	size_t names_cap;
	pcre2_code **patterns; /* owned, each too */
	size_t n_patterns;
	size_t patterns_cap;
	uint64_t slow_ns; /* processor time of slow tests so far */
	/* Made with the first pattern. */
	pcre2_compile_context *compile;
	pcre2_match_context *limits;
};

struct name_filter *
name_filter_new(void)
{
	return calloc(1, sizeof(struct name_filter));
}

void
name_filter_free(struct name_filter *m)
{
	size_t i;

	if (m == NULL)
		return;
	for (i = 0; i < m->n_names; i++)
		free(m->names[i]);
	free(m->names);
	for (i = 0; i < m->n_patterns; i++)
		pcre2_code_free(m->patterns[i]);
	free(m->patterns);
	pcre2_match_context_free(m->limits);
	pcre2_compile_context_free(m->compile);
	free(m);
}

/* Makes room for one more pointer in an array of n. */
static int
grow(void **array, size_t n, size_t *cap)
{
	size_t want = *cap == 0 ? 4 : *cap * 2;
	void *p;

	if (n < *cap)
		return 0;
	if ((p = reallocarray(*array, want, sizeof(void *))) == NULL)
		return -1;
	*array = p;
	*cap = want;
	return 0;
}

int
name_filter_add_name(struct name_filter *m, const char *name)
{
	char *copy;

	if (grow((void **)&m->names, m->n_names, &m->names_cap) != 0)
		return -1;
	if ((copy = strdup(name)) == NULL)
		return -1;
	m->names[m->n_names++] = copy;
	return 0;
}

static int
make_contexts(struct name_filter *m)
{
	if (m->compile == NULL) {
		if ((m->compile = pcre2_compile_context_create(NULL)) == NULL)
			return -1;
		pcre2_set_max_pattern_length(m->compile,
		    NAME_FILTER_PATTERN_MAX);
		pcre2_set_parens_nest_limit(m->compile, NEST_MAX);
	}
	if (m->limits == NULL) {
		if ((m->limits = pcre2_match_context_create(NULL)) == NULL)
			return -1;
		pcre2_set_match_limit(m->limits, MATCH_STEPS);
		pcre2_set_depth_limit(m->limits, MATCH_DEPTH);
		pcre2_set_heap_limit(m->limits, MATCH_HEAP_KB);
	}
	return 0;
}

/* The sentence for a pattern that was refused at `offset`. */
static void
explain(char *err, size_t err_size, const char *pattern, size_t offset,
    const char *what)
{
	char shown[128];

	log_escape(shown, sizeof(shown), pattern, strlen(pattern));
	snprintf(err, err_size,
	    "pattern \"%s\" cannot be used: %s (at byte %zu of it)", shown,
	    what, offset);
}

int
name_filter_add_regex(struct name_filter *m, const char *pattern, char *err,
    size_t err_size)
{
	PCRE2_SIZE offset = 0;
	char what[160];
	pcre2_code *code;
	size_t size = 0;
	int code_error = 0;

	if (m->n_patterns >= NAME_FILTER_PATTERNS_MAX)
		return FAILURE(err, err_size,
		    "more than %u patterns in one filter are not accepted",
		    NAME_FILTER_PATTERNS_MAX);
	if (make_contexts(m) != 0 ||
	    grow((void **)&m->patterns, m->n_patterns, &m->patterns_cap) != 0)
		return FAILURE(err, err_size, "no memory for a pattern");
	if (strlen(pattern) > NAME_FILTER_PATTERN_MAX) {
		snprintf(what, sizeof(what), "it is longer than %u bytes",
		    NAME_FILTER_PATTERN_MAX);
		explain(err, err_size, pattern, NAME_FILTER_PATTERN_MAX, what);
		return -1;
	}
	code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
	    COMPILE_OPTIONS, &code_error, &offset, m->compile);
	if (code == NULL) {
		if (pcre2_get_error_message(code_error, (PCRE2_UCHAR *)what,
			sizeof(what)) < 0)
			snprintf(what, sizeof(what), "error %d", code_error);
		explain(err, err_size, pattern, offset, what);
		return -1;
	}
	if (pcre2_pattern_info(code, PCRE2_INFO_SIZE, &size) != 0 ||
	    size > COMPILED_MAX) {
		pcre2_code_free(code);
		explain(err, err_size, pattern, 0, "it is too complex");
		return -1;
	}
	m->patterns[m->n_patterns++] = code;
	return 0;
}

bool
name_filter_is_empty(const struct name_filter *m)
{
	return m->n_names == 0 && m->n_patterns == 0;
}

static uint64_t
cpu_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool
is_spent(const struct name_filter *m)
{
	return m->slow_ns > SLOW_ALL_NS * m->n_patterns;
}

/* Counts the time of one test, if it was slow. */
static void
charge(struct name_filter *m, uint64_t ns)
{
	if (ns < SLOW_NS || is_spent(m))
		return;
	m->slow_ns += ns;
	if (is_spent(m))
		log_warn("patterns of a name filter took too long: from now on "
		    "they fit no name");
}

/*
 * The working memory of a match is kept with its match_data, so that lives no
 * longer than one test: a filter at rest must not hold MATCH_HEAP_KB.
 */
static bool
test_patterns(struct name_filter *m, const char *name)
{
	pcre2_match_data *data;
	uint64_t began, ended;
	bool fits = false;
	size_t i;

	/* Groups are not looked at; 0 says only that they had no room. */
	if ((data = pcre2_match_data_create(1, NULL)) == NULL)
		return false;
	began = cpu_ns();
	for (i = 0; i < m->n_patterns && !fits && !is_spent(m); i++) {
		fits = pcre2_match(m->patterns[i], (PCRE2_SPTR)name,
		    PCRE2_ZERO_TERMINATED, 0, 0, data, m->limits) >= 0;
		ended = cpu_ns();
		charge(m, ended - began);
		began = ended;
	}
	pcre2_match_data_free(data);
	return fits;
}

bool
name_filter_test(struct name_filter *m, const char *name)
{
	size_t i;

	if (name_filter_is_empty(m))
		return true;
	for (i = 0; i < m->n_names; i++)
		if (strcmp(m->names[i], name) == 0)
			return true;
	return m->n_patterns > 0 && test_patterns(m, name);
}
