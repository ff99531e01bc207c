#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/control_ask.h"
#include "client/command/session_pick.h"
#include "protos/control.pb-c.h"
#include "transport/base/failure.h"

#define ERROR_BYTES 2048

typedef Tributary__QuerySessionsReply sessions_reply;

/* Sessions have numbers of their collector's own. */
static int
refuse_bare_id(const struct control_ask *r, const char *word, char *err,
    size_t err_size)
{
	if (r->collectors.list[0].name == NULL || word[0] == '\0' ||
	    word[strspn(word, "0123456789")] != '\0')
		return 0;
	return FAILURE(err, err_size, "each collector has a session %s of its "
	    "own: say which is meant (%s/%s)", word, r->collectors.list[0].name,
	    word);
}

/*
 * Collects what the words mean at one collector into `here`, without those
 * that mean nothing there; marks in found those that any collector knows.
 * Returns how many are in `here`.
 */
static size_t
words_of(const struct control_ask *r, size_t i, bool patterns,
    const char **here, bool *found, char *err, size_t err_size)
{
	const sessions_reply *reply = (sessions_reply *)r->peers[i].reply;
	const struct Tributary__SessionState **scratch;
	size_t n = 0, w;

	scratch = calloc(reply->n_sessions + 1, sizeof(*scratch));
	for (w = 0; scratch != NULL && w < r->line.n_words; w++) {
		here[n] = collectors_word(&r->collectors, i, r->line.words[w]);
		if (here[n] == NULL || session_pick(reply,
		    &(struct session_words){ &here[n], 1, patterns }, scratch,
		    err, err_size) < 0)
			continue;
		found[w] = true;
		n++;
	}
	free(scratch);
	return n;
}

static int
pick_of(const struct control_ask *r, size_t i, bool patterns, bool *found,
    struct control_sessions_list *l, char *err, size_t err_size)
{
	const char **here = calloc(r->line.n_words + 1, sizeof(*here));
	int n = 0;
	size_t n_here;

	l->peer = &r->peers[i];
	l->collector = l->peer->is->name;
	l->reply = (const sessions_reply *)l->peer->reply;
	l->sessions = calloc(l->reply->n_sessions + 1, sizeof(*l->sessions));
	if (here == NULL || l->sessions == NULL) {
		free(here);
		return FAILURE(err, err_size, "out of memory");
	}
	n_here = words_of(r, i, patterns, here, found, err, err_size);
	if (n_here > 0 || r->line.n_words == 0)
		n = session_pick(l->reply, &(struct session_words){ here,
		    n_here, patterns }, l->sessions, err, err_size);
	free(here);
	l->n = n > 0 ? (size_t)n : 0;
	return n < 0 ? -1 : 0;
}

static int
pick(const struct control_ask *r, bool patterns, bool *found,
    struct control_sessions_list *lists, char *err, size_t err_size)
{
	size_t i, n = 0;

	for (i = 0; i < r->line.n_words; i++)
		if (refuse_bare_id(r, r->line.words[i], err, err_size) != 0)
			return -1;
	for (i = 0; i < r->collectors.n; i++)
		if (r->peers[i].reply != NULL && pick_of(r, i, patterns, found,
			&lists[n++], err, err_size) != 0)
			return -1;
	for (i = 0; i < r->line.n_words; i++) {
		if (found[i])
			continue;
		/* With one collector, session_pick() has said it better. */
		if (r->collectors.list[0].name == NULL)
			return -1;
		return FAILURE(err, err_size, "no collector that answered has "
		    "a session %s", r->line.words[i]);
	}
	return 0;
}

struct control_sessions_list *
control_ask_pick(const struct control_ask *r, bool patterns)
{
	struct control_sessions_list *lists;
	char err[ERROR_BYTES] = "out of memory";
	bool *found;

	lists = calloc(r->n_replies + 1, sizeof(*lists));
	found = calloc(r->line.n_words + 1, sizeof(*found));
	if (lists != NULL && found != NULL &&
	    pick(r, patterns, found, lists, err, sizeof(err)) == 0) {
		free(found);
		return lists;
	}
	free(found);
	control_ask_lists_free(r, lists);
	control_ask_refuse(r, err);
	return NULL;
}

void
control_ask_lists_free(const struct control_ask *r,
    struct control_sessions_list *lists)
{
	size_t i;

	for (i = 0; lists != NULL && i < r->n_replies; i++)
		free(lists[i].sessions);
	free(lists);
}
