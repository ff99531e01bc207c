#include "client/cert/index.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "transport/base/failure.h"
#include "transport/socket/roles.h"

#define HEADER "# tributary certificates 1\n"
#define COLLECTOR "collector"
/* serial, name, role, from, until, state, revoked, reason */
#define N_FIELDS 8
/* Longer than any line that is right. */
#define LINE_MAX_BYTES 255
#define ENTRY_TEXT_BYTES 256

static const struct {
	enum cert_reason reason;
	const char *text;
} reasons[] = {
	{ CERT_REASON_UNSPECIFIED, "unspecified" },
	{ CERT_REASON_KEY_COMPROMISE, "key-compromise" },
	{ CERT_REASON_AFFILIATION_CHANGED, "affiliation-changed" },
	{ CERT_REASON_SUPERSEDED, "superseded" },
	{ CERT_REASON_CESSATION, "cessation" },
};
#define N_REASONS (sizeof(reasons) / sizeof(reasons[0]))

void
cert_index_done(struct cert_index *x)
{
	free(x->entries);
	*x = (struct cert_index){ 0 };
}

int
cert_index_add(struct cert_index *x, const struct cert_entry *e)
{
	struct cert_entry *more;
	size_t room;

	if (x->n == CERT_INDEX_MAX_ENTRIES)
		return -1;
	if (x->n == x->room) {
		room = x->room == 0 ? 16 : x->room * 2;
		more = reallocarray(x->entries, room, sizeof(*more));
		if (more == NULL)
			return -1;
		x->entries = more;
		x->room = room;
	}
	x->entries[x->n++] = *e;
	return 0;
}

const char *
cert_role_text(uint32_t role)
{
	return role == 0 ? COLLECTOR : role_name((enum role)role);
}

const char *
cert_state_text(enum cert_state state)
{
	switch (state) {
	case CERT_VALID:
		return "valid";
	case CERT_REPLACED:
		return "replaced";
	case CERT_REVOKED:
		return "revoked";
	}
	return "?";
}

const char *
cert_reason_text(enum cert_reason reason)
{
	size_t i;

	for (i = 0; i < N_REASONS; i++)
		if (reasons[i].reason == reason)
			return reasons[i].text;
	return "?";
}

int
cert_reason_parse(const char *text, enum cert_reason *reason)
{
	size_t i;

	for (i = 0; i < N_REASONS; i++) {
		if (strcmp(reasons[i].text, text) != 0)
			continue;
		*reason = reasons[i].reason;
		return 0;
	}
	return -1;
}

const char *
cert_time_text(time_t t, char out[CERT_TIME_SIZE])
{
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL ||
	    strftime(out, CERT_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		snprintf(out, CERT_TIME_SIZE, "?");
	return out;
}

static int
parse_time(const char *text, time_t *t)
{
	char again[CERT_TIME_SIZE];
	struct tm tm = { 0 };
	time_t v;

	/* Four digits of year: our own form, and no overflow anywhere. */
	if (strlen(text) != 20 || strspn(text, "0123456789") != 4 ||
	    strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) == NULL)
		return -1;
	v = timegm(&tm);
	/* The 31st of February, the 61st second */
	if (strcmp(cert_time_text(v, again), text) != 0)
		return -1;
	*t = v;
	return 0;
}

static bool
is_serial(const char *s)
{
	size_t n = strspn(s, "0123456789ABCDEF");

	return n > 0 && n < CERT_SERIAL_SIZE && s[n] == '\0';
}

static int
parse_role(const char *text, uint32_t *role)
{
	if (strcmp(text, COLLECTOR) == 0) {
		*role = 0;
		return 0;
	}
	if ((*role = role_by_name(text)) == 0)
		return -1;
	/* only as we write it */
	return strcmp(text, role_name((enum role)*role)) == 0 ? 0 : -1;
}

static int
parse_state(const char *state, const char *when, const char *why,
    struct cert_entry *e)
{
	if (strcmp(state, "revoked") == 0) {
		e->state = CERT_REVOKED;
		return parse_time(when, &e->revoked) < 0 ||
			cert_reason_parse(why, &e->reason) < 0
		    ? -1
		    : 0;
	}
	if (strcmp(when, "-") != 0 || strcmp(why, "-") != 0)
		return -1;
	e->state = CERT_VALID;
	if (strcmp(state, "valid") == 0)
		return 0;
	e->state = CERT_REPLACED;
	return strcmp(state, "replaced") == 0 ? 0 : -1;
}

/* Reads a line without its newline.  NULL, or the reason to refuse it. */
static const char *
parse_line(const char *line, size_t len, struct cert_entry *e)
{
	char copy[LINE_MAX_BYTES + 1], ignored[128];
	char *fields[N_FIELDS], *p = copy, *tab;
	size_t i;

	if (len > LINE_MAX_BYTES || memchr(line, '\0', len) != NULL)
		return "is not of our making";
	memcpy(copy, line, len);
	copy[len] = '\0';
	for (i = 0; i < N_FIELDS; i++) {
		fields[i] = p;
		tab = strchr(p, '\t');
		if ((tab == NULL) != (i == N_FIELDS - 1))
			return "does not have eight fields";
		if (tab != NULL) {
			*tab = '\0';
			p = tab + 1;
		}
	}
	*e = (struct cert_entry){ 0 };
	if (!is_serial(fields[0]))
		return "has no serial number";
	if (cert_name_check(fields[1], ignored, sizeof(ignored)) < 0)
		return "has a name that is none";
	if (parse_role(fields[2], &e->role) < 0)
		return "has an unknown role";
	if (parse_time(fields[3], &e->from) < 0 ||
	    parse_time(fields[4], &e->until) < 0)
		return "has a time that is none";
	if (parse_state(fields[5], fields[6], fields[7], e) < 0)
		return "has a state that is none";
	snprintf(e->serial, sizeof(e->serial), "%s", fields[0]);
	snprintf(e->name, sizeof(e->name), "%s", fields[1]);
	return NULL;
}

int
cert_index_parse(struct cert_index *x, const char *text, size_t len, char *err,
    size_t err_size)
{
	const char *end, *wrong;
	struct cert_entry e;
	size_t line = 1;

	if (len < strlen(HEADER) || memcmp(text, HEADER, strlen(HEADER)) != 0)
		return FAILURE(err, err_size, "line 1 is not \"%.*s\"",
		    (int)strlen(HEADER) - 1, HEADER);
	for (; len > 0; line++, len -= (size_t)(end + 1 - text),
	    text = end + 1) {
		if ((end = memchr(text, '\n', len)) == NULL)
			wrong = "is not complete";
		else if (*text == '#')
			continue;
		else
			wrong = parse_line(text, (size_t)(end - text), &e);
		if (wrong != NULL)
			return FAILURE(err, err_size, "line %zu %s", line,
			    wrong);
		if (cert_index_add(x, &e) < 0)
			return FAILURE(err, err_size, "line %zu is one too "
			    "many (at most %u), or memory is short", line,
			    CERT_INDEX_MAX_ENTRIES);
	}
	return 0;
}

static int
print_entry(char *out, size_t room, const struct cert_entry *e)
{
	char from[CERT_TIME_SIZE], until[CERT_TIME_SIZE];
	char revoked[CERT_TIME_SIZE] = "-";
	const char *reason = "-";

	if (e->state == CERT_REVOKED) {
		cert_time_text(e->revoked, revoked);
		reason = cert_reason_text(e->reason);
	}
	return snprintf(out, room, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
	    e->serial, e->name, cert_role_text(e->role),
	    cert_time_text(e->from, from), cert_time_text(e->until, until),
	    cert_state_text(e->state), revoked, reason);
}

char *
cert_index_text(const struct cert_index *x, size_t *len)
{
	size_t room = strlen(HEADER) + 1 + x->n * ENTRY_TEXT_BYTES, at, i;
	char *out;

	if ((out = malloc(room)) == NULL)
		return NULL;
	at = (size_t)snprintf(out, room, "%s", HEADER);
	for (i = 0; i < x->n; i++)
		at += (size_t)print_entry(out + at, room - at, &x->entries[i]);
	*len = at;
	return out;
}

struct cert_entry *
cert_index_find(const struct cert_index *x, const char *name,
    enum cert_state state)
{
	size_t i;

	for (i = x->n; i-- > 0;)
		if (x->entries[i].role != 0 && x->entries[i].state == state &&
		    strcmp(x->entries[i].name, name) == 0)
			return &x->entries[i];
	return NULL;
}

struct cert_entry *
cert_index_collector(const struct cert_index *x)
{
	size_t i;

	for (i = x->n; i-- > 0;)
		if (x->entries[i].role == 0 &&
		    x->entries[i].state != CERT_REPLACED)
			return &x->entries[i];
	return NULL;
}

/* s without the colons that many programs print. */
static bool
same_serial(const char *serial, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == ':')
			continue;
		if (strncasecmp(serial, s, 1) != 0)
			return false;
		serial++;
	}
	return *serial == '\0';
}

struct cert_entry *
cert_index_by_serial(const struct cert_index *x, const char *serial)
{
	size_t i;

	for (i = x->n; i-- > 0;)
		if (same_serial(x->entries[i].serial, serial))
			return &x->entries[i];
	return NULL;
}
