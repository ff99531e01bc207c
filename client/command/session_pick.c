#include "client/command/session_pick.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/control.pb-c.h"
#include "protos/nearest.h"
#include "transport/base/failure.h"
#include "transport/base/glob.h"
#include "transport/base/log.h"

typedef Tributary__SessionState session_state;
typedef Tributary__QuerySessionsReply sessions_reply;

#define CLONED TRIBUTARY__SESSION_STATE__STATE__CLONED
/* Ids that an error names. */
#define NAMED_MAX 8u

/* A number and nothing else. */
static bool
is_id(const char *word, uint64_t *id)
{
	char *end;

	if (word[0] < '0' || word[0] > '9')
		return false;
	errno = 0;
	*id = strtoull(word, &end, 10);
	return *end == '\0' && errno == 0;
}

static bool
is_called(const session_state *s, const char *word, bool patterns)
{
	const char *name = s->unique_session_name;

	if (name == NULL || name[0] == '\0')
		return false;
	return patterns ? glob_match(word, name) : strcmp(word, name) == 0;
}

/* Marks the sessions that the word means; false: none. */
static bool
mark_by_id(const sessions_reply *r, uint64_t id, bool *marks)
{
	size_t i;

	for (i = 0; i < r->n_sessions; i++) {
		if (r->sessions[i]->id != id)
			continue;
		marks[i] = true;
		return true;
	}
	return false;
}

static bool
mark_by_name(const sessions_reply *r, const char *word, bool patterns,
    bool snapshots, bool *marks)
{
	bool any = false;
	size_t i;

	for (i = 0; i < r->n_sessions; i++) {
		if ((r->sessions[i]->state == CLONED) != snapshots ||
		    !is_called(r->sessions[i], word, patterns))
			continue;
		any = marks[i] = true;
	}
	return any;
}

static bool
mark(const sessions_reply *r, const char *word, bool patterns, bool *marks)
{
	uint64_t id;

	return (is_id(word, &id) && mark_by_id(r, id, marks)) ||
	    mark_by_name(r, word, patterns, false, marks) ||
	    mark_by_name(r, word, patterns, true, marks);
}

static void
append(char *err, size_t err_size, const char *text)
{
	size_t len = strlen(err);

	snprintf(err + len, err_size - len, "%s", text);
}

/* "; there are 3 (robots), 7 and 9" */
static void
append_known(const sessions_reply *r, char *err, size_t err_size)
{
	char text[120], name[80];
	size_t i;

	append(err, err_size, r->n_sessions == 1 ? "; there is " :
	    "; there are ");
	for (i = 0; i < r->n_sessions && i < NAMED_MAX; i++) {
		const char *called = r->sessions[i]->unique_session_name;

		snprintf(text, sizeof(text), "%s%" PRIu64, i == 0 ? "" :
		    i + 1 == r->n_sessions ? " and " : ", ",
		    r->sessions[i]->id);
		append(err, err_size, text);
		if (called == NULL || called[0] == '\0')
			continue;
		snprintf(text, sizeof(text), " (%s)", log_escape(name,
		    sizeof(name), called, strlen(called)));
		append(err, err_size, text);
	}
	if (i < r->n_sessions)
		append(err, err_size, " and others");
}

static void
complain(const sessions_reply *r, const char *word, char *err, size_t err_size)
{
	char shown[160], name[80];
	struct nearest n;
	const char *meant;
	uint64_t id;
	size_t i;

	snprintf(err, err_size, "there is no session %s%s%s", is_id(word, &id) ?
	    "" : "\"", log_escape(shown, sizeof(shown), word, strlen(word)),
	    is_id(word, &id) ? "" : "\"");
	if (r->n_sessions == 0) {
		append(err, err_size, ", nor any other that you may see");
		return;
	}
	nearest_init(&n, word, strlen(word));
	for (i = 0; i < r->n_sessions; i++)
		if (r->sessions[i]->unique_session_name != NULL)
			nearest_offer(&n, r->sessions[i]->unique_session_name);
	if ((meant = nearest_best(&n)) == NULL) {
		append_known(r, err, err_size);
		return;
	}
	append(err, err_size, "; did you mean ");
	append(err, err_size, log_escape(name, sizeof(name), meant,
	    strlen(meant)));
	append(err, err_size, "?");
}

int
session_pick(const sessions_reply *r, const struct session_words *words,
    const session_state **out, char *err, size_t err_size)
{
	bool *marks = calloc(r->n_sessions + 1, sizeof(*marks));
	size_t i;
	int n = -1;

	if (marks == NULL)
		return FAILURE(err, err_size, "out of memory");
	for (i = 0; i < words->n; i++) {
		if (mark(r, words->words[i], words->patterns, marks))
			continue;
		complain(r, words->words[i], err, err_size);
		goto out;
	}
	n = 0;
	for (i = 0; i < r->n_sessions; i++)
		if (marks[i] || words->n == 0)
			out[n++] = r->sessions[i];
out:
	free(marks);
	return n;
}
