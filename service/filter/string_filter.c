#define PCRE2_CODE_UNIT_WIDTH 8
#include "service/filter/string_filter.h"

#include <pcre2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protos/trace_config.pb-c.h"
#include "service/filter/bytecode.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"

/*
 * Limits of patterns and matches, as in service/config/name_filter.c, but
 * strings are longer than names.
 */
#define COMPILED_MAX     (48u * 1024u)   /* bytes of one compiled pattern */
#define COMPILED_ALL_MAX (1024u * 1024u) /* of all */
#define NEST_MAX         50u             /* brackets within brackets */
#define MATCH_STEPS      100000u         /* about a millisecond */
#define MATCH_DEPTH      10000u
#define MATCH_HEAP_KB    4096u
/*
 * CPU time for all strings of one packet: a base, and more for each byte of it;
 * honest packets do not need a tenth of that.  MATCH_STEPS does not bound the
 * time of a match: steps count anew from each place where a search begins, and
 * one step may look at all of a string.  Reading the clock is not free: it is
 * read once in BYTES_TO_CLOCK bytes that patterns may have looked at, which
 * most packets never reach.
 */
#define PACKET_CPU_NS     20000000ull
#define BYTE_CPU_NS       500ull
#define PACKET_CPU_MAX_NS 500000000ull
#define BYTES_TO_CLOCK    (256u * 1024u)
#define ITEM_BYTES        64u /* cost of a pattern's item, as bytes */

/*
 * Patterns are written for ECMAScript, and match bytes: producers' strings need
 * not be UTF-8.  Automatic callouts: each is a chance to stop the match.
 */
#define COMPILE_OPTIONS                                                        \
	(PCRE2_AUTO_CALLOUT | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP |              \
	    PCRE2_NEVER_BACKSLASH_C | PCRE2_ALLOW_EMPTY_CLASS |                \
	    PCRE2_ALT_BSUX | PCRE2_DOLLAR_ENDONLY | PCRE2_MATCH_UNSET_BACKREF)
#define WHOLE_OPTIONS (PCRE2_ANCHORED | PCRE2_ENDANCHORED)

#define TYPE_WORDS (BYTECODE_TYPES / 64u)

/* In "B|123|payload" the second '|' is not found before this. */
#define ATRACE_PIPE_MIN 2u

typedef Perfetto__Protos__TraceConfig__TraceFilter__StringFilterRule rule_pb;

enum rule_scope {
	SCOPE_STRING,        /* the pattern matches the whole string */
	SCOPE_ATRACE,        /* as above, if the payload has its prefix */
	SCOPE_ATRACE_SEARCH, /* all matches, if the payload has its prefix */
};

struct rule {
	enum rule_scope scope;
	bool redact;   /* else break */
	pcre2_code *pattern;
	size_t compiled; /* bytes of it */
	char *payload; /* prefix of atrace payloads; never NULL */
	size_t payload_len;
	char *name;    /* NULL: none */
	uint64_t types[TYPE_WORDS]; /* a bit for each semantic type */
};

enum match_result { MATCH_NO, MATCH_YES, MATCH_GAVE_UP };

struct string_filter {
	struct rule *rules;
	size_t n_rules;
	size_t rules_cap;
	size_t compiled; /* bytes of all patterns */
	uint32_t groups; /* of the pattern with most, and the match itself */
	pcre2_compile_context *compile;
	pcre2_match_context *limits;
	/* Account of the packet under way: */
	size_t looked_at;  /* bytes, at most, since the clock was read */
	uint64_t may_take; /* CPU time, ns */
	uint64_t deadline; /* CPU time of the thread; 0: clock not read yet */
	bool gave_up;      /* patterns are not tried any more */
	/* A packet took all its time: later ones get PACKET_CPU_NS only. */
	bool is_slow;
};

static bool
out_of_time(struct string_filter *f, size_t bytes)
{
	struct timespec t;
	uint64_t now;

	f->looked_at += bytes + ITEM_BYTES;
	if (f->looked_at < BYTES_TO_CLOCK)
		return false;
	f->looked_at = 0;
	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
		return true;
	now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	if (f->deadline == 0)
		f->deadline = now + f->may_take;
	f->is_slow = f->is_slow || now > f->deadline;
	return now > f->deadline;
}

/* Called before each item of a pattern, which looks at the rest at most. */
static int
item_cb(pcre2_callout_block *b, void *arg)
{
	return out_of_time(arg, b->subject_length - b->current_position) ?
	    PCRE2_ERROR_CALLOUT : 0;
}

struct string_filter *
string_filter_new(void)
{
	struct string_filter *f;

	if ((f = calloc(1, sizeof(*f))) == NULL)
		return NULL;
	f->groups = 1;
	f->compile = pcre2_compile_context_create(NULL);
	f->limits = pcre2_match_context_create(NULL);
	if (f->compile == NULL || f->limits == NULL)
		goto fail;
	pcre2_set_max_pattern_length(f->compile, STRING_PATTERN_MAX);
	pcre2_set_parens_nest_limit(f->compile, NEST_MAX);
	/* '.' fits neither CR nor LF, as in ECMAScript. */
	if (pcre2_set_newline(f->compile, PCRE2_NEWLINE_ANYCRLF) != 0)
		goto fail;
	pcre2_set_match_limit(f->limits, MATCH_STEPS);
	pcre2_set_depth_limit(f->limits, MATCH_DEPTH);
	pcre2_set_heap_limit(f->limits, MATCH_HEAP_KB);
	if (pcre2_set_callout(f->limits, item_cb, f) != 0)
		goto fail;
	return f;

fail:
	string_filter_free(f);
	return NULL;
}

static void
rule_done(struct rule *r)
{
	pcre2_code_free(r->pattern);
	free(r->payload);
	free(r->name);
}

void
string_filter_free(struct string_filter *f)
{
	size_t i;

	if (f == NULL)
		return;
	for (i = 0; i < f->n_rules; i++)
		rule_done(&f->rules[i]);
	free(f->rules);
	pcre2_match_context_free(f->limits);
	pcre2_compile_context_free(f->compile);
	free(f);
}

/* ---- loading ---- */

static int
refuse(char *err, size_t err_size, const rule_pb *pb, const char *what)
{
	const char *pattern = pb->regex_pattern == NULL ? "" :
	    pb->regex_pattern;
	char shown[128];

	log_escape(shown, sizeof(shown), pattern, strlen(pattern));
	return FAILURE(err, err_size, "Trace filter has invalid string "
	    "filtering rules: of the one with the pattern \"%s\" %s", shown,
	    what);
}

static int
read_policy(struct rule *r, const rule_pb *pb)
{
	switch (pb->policy) {
	case PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_POLICY__SFP_MATCH_REDACT_GROUPS:
		r->scope = SCOPE_STRING;
		r->redact = true;
		return 0;
	case PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_POLICY__SFP_ATRACE_MATCH_REDACT_GROUPS:
		r->scope = SCOPE_ATRACE;
		r->redact = true;
		return 0;
	case PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_POLICY__SFP_MATCH_BREAK:
		r->scope = SCOPE_STRING;
		return 0;
	case PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_POLICY__SFP_ATRACE_MATCH_BREAK:
		r->scope = SCOPE_ATRACE;
		return 0;
	case PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_POLICY__SFP_ATRACE_REPEATED_SEARCH_REDACT_GROUPS:
		r->scope = SCOPE_ATRACE_SEARCH;
		r->redact = true;
		return 0;
	case PERFETTO__PROTOS__TRACE_CONFIG__TRACE_FILTER__STRING_FILTER_POLICY__SFP_UNSPECIFIED:
	default: /* a number that the schema does not have */
		return -1;
	}
}

/* A rule that names no type is for fields without one. */
static int
read_types(struct rule *r, const rule_pb *pb)
{
	uint32_t type;
	size_t i;

	if (pb->n_semantic_type == 0)
		r->types[0] = 1;
	for (i = 0; i < pb->n_semantic_type; i++) {
		type = (uint32_t)pb->semantic_type[i];
		if (type >= BYTECODE_TYPES)
			return -1;
		r->types[type / 64] |= 1ull << (type % 64);
	}
	return 0;
}

static int
read_pattern(struct string_filter *f, struct rule *r, const rule_pb *pb,
    char *err, size_t err_size)
{
	const char *pattern = pb->regex_pattern == NULL ? "" :
	    pb->regex_pattern;
	uint32_t options = COMPILE_OPTIONS, groups = 0;
	PCRE2_SIZE offset = 0;
	char why[160], what[224];
	int code = 0;

	if (r->scope != SCOPE_ATRACE_SEARCH)
		options |= WHOLE_OPTIONS;
	r->pattern = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
	    options, &code, &offset, f->compile);
	if (r->pattern == NULL) {
		if (pcre2_get_error_message(code, (PCRE2_UCHAR *)why,
			sizeof(why)) < 0)
			snprintf(why, sizeof(why), "error %d", code);
		snprintf(what, sizeof(what), "it cannot be used: %s (at byte "
		    "%zu of it)", why, offset);
		return refuse(err, err_size, pb, what);
	}
	if (pcre2_pattern_info(r->pattern, PCRE2_INFO_SIZE, &r->compiled) != 0 ||
	    pcre2_pattern_info(r->pattern, PCRE2_INFO_CAPTURECOUNT,
	    &groups) != 0 || r->compiled > COMPILED_MAX ||
	    f->compiled + r->compiled > COMPILED_ALL_MAX)
		return refuse(err, err_size, pb, "it is too complex");
	if (groups + 1 > f->groups)
		f->groups = groups + 1;
	return 0;
}

static int
read_strings(struct rule *r, const rule_pb *pb)
{
	r->payload = strdup(pb->atrace_payload_starts_with == NULL ? "" :
	    pb->atrace_payload_starts_with);
	if (r->payload == NULL)
		return -1;
	r->payload_len = strlen(r->payload);
	if (pb->name == NULL || pb->name[0] == '\0')
		return 0;
	return (r->name = strdup(pb->name)) == NULL ? -1 : 0;
}

/* Returns the place for a rule; NULL: no memory. */
static struct rule *
place_for(struct string_filter *f, const struct rule *r)
{
	size_t i, cap;
	void *p;

	for (i = 0; r->name != NULL && i < f->n_rules; i++)
		if (f->rules[i].name != NULL &&
		    strcmp(f->rules[i].name, r->name) == 0) {
			f->compiled -= f->rules[i].compiled;
			rule_done(&f->rules[i]);
			return &f->rules[i];
		}
	if (f->n_rules == f->rules_cap) {
		cap = f->rules_cap == 0 ? 8 : f->rules_cap * 2;
		if ((p = reallocarray(f->rules, cap, sizeof(*f->rules))) ==
		    NULL)
			return NULL;
		f->rules = p;
		f->rules_cap = cap;
	}
	return &f->rules[f->n_rules++];
}

int
string_filter_add(struct string_filter *f, const rule_pb *pb, char *err,
    size_t err_size)
{
	struct rule r = { 0 }, *place;
	int rc = -1;

	if (f->n_rules >= STRING_RULES_MAX)
		return FAILURE(err, err_size, "Trace filter has invalid string "
		    "filtering rules: more than %u are not accepted",
		    STRING_RULES_MAX);
	if (read_policy(&r, pb) != 0)
		rc = refuse(err, err_size, pb, "the policy is missing or not "
		    "known");
	else if (read_types(&r, pb) != 0)
		rc = refuse(err, err_size, pb, "a semantic type is not known");
	else if (read_strings(&r, pb) != 0)
		snprintf(err, err_size, "No memory for the trace filter");
	else
		rc = read_pattern(f, &r, pb, err, err_size);
	if (rc == 0 && (place = place_for(f, &r)) == NULL) {
		snprintf(err, err_size, "No memory for the trace filter");
		rc = -1;
	}
	if (rc != 0) {
		rule_done(&r);
		return -1;
	}
	*place = r;
	f->compiled += r.compiled;
	return 0;
}

/* ---- matching ---- */

void
string_filter_begin(struct string_filter *f, size_t packet)
{
	f->may_take = PACKET_CPU_MAX_NS;
	if (f->is_slow)
		f->may_take = PACKET_CPU_NS;
	else if (packet < (PACKET_CPU_MAX_NS - PACKET_CPU_NS) / BYTE_CPU_NS)
		f->may_take = PACKET_CPU_NS + packet * BYTE_CPU_NS;
	f->looked_at = 0;
	f->deadline = 0;
	f->gave_up = false;
}

/* A string that rules are applied to. */
struct subject {
	uint8_t *s;
	size_t len;
	/* Owned; NULL until the first rule that matches against it. */
	pcre2_match_data *m;
};

/* Makes one attempt, from start on; leaves the groups in the vector of t->m. */
static enum match_result
match(struct string_filter *f, const struct rule *r, const struct subject *t,
    size_t start, uint32_t options)
{
	int rc;

	if (out_of_time(f, t->len - start))
		f->gave_up = true;
	if (f->gave_up)
		return MATCH_GAVE_UP;
	rc = pcre2_match(r->pattern, t->s, t->len, start, options, t->m,
	    f->limits);
	if (rc >= 0)
		return MATCH_YES;
	if (rc == PCRE2_ERROR_NOMATCH)
		return MATCH_NO;
	f->gave_up = true;
	return MATCH_GAVE_UP;
}

static void
write_over(uint8_t *p, size_t len)
{
	static const char text[] = "P60REDACTED";
	size_t n = len < sizeof(text) - 1 ? len : sizeof(text) - 1;

	memcpy(p, text, n);
	memset(p + n, '-', len - n);
}

static void
redact_groups(const struct rule *r, const struct subject *t)
{
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(t->m);
	uint32_t i, n = 0;

	if (pcre2_pattern_info(r->pattern, PCRE2_INFO_CAPTURECOUNT, &n) != 0)
		return;
	for (i = 1; i <= n; i++)
		if (v[2 * i] != PCRE2_UNSET && v[2 * i] < v[2 * i + 1])
			write_over(t->s + v[2 * i], v[2 * i + 1] - v[2 * i]);
}

/*
 * Redacts all matches, one behind the other.  After an empty match, a match
 * that is not empty is searched in the same place, and then a byte further.
 */
static enum match_result
redact_found(struct string_filter *f, const struct rule *r,
    const struct subject *t)
{
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(t->m);
	enum match_result got, any = MATCH_NO;
	uint32_t options = 0;
	size_t start = 0;

	while (start <= t->len) {
		got = match(f, r, t, start, options);
		if (got == MATCH_GAVE_UP)
			return got;
		if (got == MATCH_NO) {
			if (options == 0)
				break;
			start++;
			options = 0;
			continue;
		}
		any = MATCH_YES;
		redact_groups(r, t);
		options = v[0] == v[1] ? PCRE2_NOTEMPTY_ATSTART |
		    PCRE2_ANCHORED : 0;
		/* \K in a pattern can put the end before the start. */
		start = v[1] > start ? v[1] : options != 0 ? start : start + 1;
	}
	return any;
}

static bool
is_for_type(const struct rule *r, uint32_t type)
{
	return type >= BYTECODE_TYPES ||
	    (r->types[type / 64] >> (type % 64) & 1) != 0;
}

/* The bytes behind the second '|', or NULL. */
static const uint8_t *
atrace_payload(const uint8_t *s, size_t len)
{
	const uint8_t *pipe;

	/* An end event (E) has no payload, and there are many of them. */
	if (len <= ATRACE_PIPE_MIN || *s == 'E')
		return NULL;
	pipe = memchr(s + ATRACE_PIPE_MIN, '|', len - ATRACE_PIPE_MIN);
	return pipe == NULL ? NULL : pipe + 1;
}

static bool
is_for_string(const struct rule *r, const uint8_t *s, size_t len,
    const uint8_t *payload)
{
	if (r->scope == SCOPE_STRING)
		return true;
	if (payload == NULL || (size_t)(s + len - payload) < r->payload_len)
		return false;
	return memcmp(payload, r->payload, r->payload_len) == 0;
}

static enum match_result
apply_rule(struct string_filter *f, const struct rule *r, struct subject *t)
{
	enum match_result got;

	/* Made late: working memory must not stay with a filter at rest. */
	if (t->m == NULL &&
	    (t->m = pcre2_match_data_create(f->groups, NULL)) == NULL)
		return MATCH_GAVE_UP;
	if (r->scope == SCOPE_ATRACE_SEARCH)
		return redact_found(f, r, t);
	got = match(f, r, t, 0, 0);
	if (got == MATCH_YES && r->redact)
		redact_groups(r, t);
	return got;
}

void
string_filter_apply(struct string_filter *f, uint8_t *s, size_t len,
    uint32_t type)
{
	enum match_result got = MATCH_NO;
	struct subject t = { .s = s, .len = len };
	const struct rule *r;
	const uint8_t *payload;
	size_t i;

	if (len == 0 || f->n_rules == 0)
		return;
	payload = atrace_payload(s, len);
	for (i = 0; i < f->n_rules && got == MATCH_NO; i++) {
		r = &f->rules[i];
		if (is_for_type(r, type) && is_for_string(r, s, len, payload))
			got = apply_rule(f, r, &t);
	}
	if (got == MATCH_GAVE_UP)
		write_over(s, len);
	pcre2_match_data_free(t.m);
}
