#include "service/onlookers/session_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/cut.h"
#include "service/session/flush.h"
#include "service/session/session.h"
#include "service/session/session_events.h"
#include "transport/base/log.h"

struct session_command {
	TAILQ_ENTRY(session_command) link;
	struct session *session;
	enum session_verb verb;
	bool discard;
	uint32_t timeout_ms; /* FLUSH */
	session_command_fn done; /* NULL: forgotten */
	void *arg;
};

/* The callback of an order that is no command yet. */
struct answer {
	session_command_fn done;
	void *arg;
};

/* "The session runs already". */
static void
refuse(const struct answer *a, const struct session *s, const char *why)
{
	char text[SESSION_COMMAND_TEXT];

	snprintf(text, sizeof(text), "The session %s", why);
	a->done(a->arg, s->id, text);
}

/* Answers it and takes it off its session. */
static void
finish(struct session_command *c, const char *error)
{
	session_command_fn done = c->done;
	uint64_t id = c->session->id;
	void *arg = c->arg;

	if (c->verb == SESSION_DO_FLUSH)
		flush_forget(c->session, c);
	TAILQ_REMOVE(&c->session->commands, c, link);
	free(c);
	if (done != NULL)
		done(arg, id, error);
}

/* Answers all commands of one kind in the same way. */
static void
finish_all(struct session *s, enum session_verb verb, const char *error)
{
	struct session_command *c, *next;

	TAILQ_FOREACH_SAFE(c, &s->commands, link, next)
		if (c->verb == verb)
			finish(c, error);
}

/* Runs on a turn of its own, as the session may be ending on the stack. */
static void
discard_cb(void *arg)
{
	struct session *s = arg;
	const struct consumer_ops *ops = s->ops;
	void *port = s->port;

	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "session %llu: discarded on command", (unsigned long long)s->id);
	s->ops = NULL;
	s->port = NULL;
	if (ops != NULL && ops->freed != NULL)
		ops->freed(port);
	session_free(s);
}

/* Frees the session on a later turn; its stop is answered then. */
static void
discard(struct session *s)
{
	if (!s->freeing)
		loop_defer(s->service->loop, &s->discard_call, discard_cb, s);
}

/*
 * Answers the commands of a session that ended: its file is complete, or failed
 * (end_error).
 */
static void
ended(struct session *s)
{
	struct session_command *c, *next;
	bool discarded = false;

	finish_all(s, SESSION_DO_START, s->end_error != NULL ? s->end_error :
	    "The session was stopped before it started");
	finish_all(s, SESSION_DO_FLUSH, "The session was stopped meanwhile");
	for (c = TAILQ_FIRST(&s->commands); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->discard)
			discarded = true;
		else
			finish(c, s->end_error);
	}
	if (discarded)
		discard(s);
}

static void
on_session(struct session *s, enum session_event e)
{
	struct session_command *c;

	switch (e) {
	case SESSION_EVENT_STARTED:
		finish_all(s, SESSION_DO_START, NULL);
		break;
	case SESSION_EVENT_ENDED:
		ended(s);
		break;
	case SESSION_EVENT_LEAVES:
		while ((c = TAILQ_FIRST(&s->commands)) != NULL)
			finish(c, c->verb == SESSION_DO_STOP ? s->end_error :
			    "The session was freed meanwhile");
		break;
	case SESSION_EVENT_STATE:
	case SESSION_EVENT_STARTS:
	case SESSION_EVENT_FILE_CLOSED:
	case SESSION_EVENT_LOSES_BUFFERS:
	case SESSION_EVENT_FREED:
		break;
	}
}

const struct session_observer session_command_observer = {
	.session = on_session,
};

void
session_command_forget(struct service *sv, void *arg)
{
	struct session_command *c;
	struct session *s;

	/* Commands that were begun go on, a stop that waits to discard, too. */
	TAILQ_FOREACH(s, &sv->sessions, link)
		TAILQ_FOREACH(c, &s->commands, link)
			if (c->arg == arg)
				c->done = NULL;
}

static void
flushed(struct session *s, bool success, void *arg)
{
	struct session_command *c = arg;
	char text[128];

	snprintf(text, sizeof(text), "Some producers did not answer within %u "
	    "ms; the data of the others is in the buffers",
	    (unsigned)c->timeout_ms);
	finish(c, success ? NULL : text);
}

/* NULL: the command was refused, and answered. */
static struct session_command *
add(struct session *s, const struct session_order *o, const struct answer *a)
{
	struct session_command *c;
	size_t n = 0;

	TAILQ_FOREACH(c, &s->commands, link)
		n++;
	if (n >= SESSION_COMMANDS_MAX ||
	    (c = calloc(1, sizeof(*c))) == NULL) {
		refuse(a, s, n >= SESSION_COMMANDS_MAX ? "has as many commands "
		    "waiting as it may have" : "does not get the memory for "
		    "one more command");
		return NULL;
	}
	c->session = s;
	c->verb = o->verb;
	c->discard = o->discard;
	c->done = a->done;
	c->arg = a->arg;
	TAILQ_INSERT_TAIL(&s->commands, c, link);
	return c;
}

/* ---- the verbs ---- */

/* Why the session cannot start or flush any more; NULL: it may. */
static const char *
not_running(const struct session *s)
{
	switch (s->state) {
	case SESSION_NEW:
	case SESSION_CONFIGURED:
	case SESSION_AWAITS_TRIGGER:
	case SESSION_STARTING:
	case SESSION_STARTED:
		break;
	case SESSION_LAST_FLUSH:
	case SESSION_STOPPING:
	case SESSION_DISABLING:
	case SESSION_GONE:
		return "is being stopped";
	case SESSION_CLOSING:
	case SESSION_DISABLED:
		return "has stopped already";
	case SESSION_CLONED:
		return "is a snapshot of another: it does not change any more";
	}
	return NULL;
}

static void
do_start(struct session *s, const struct session_order *o,
    const struct answer *a)
{
	const char *why = not_running(s);

	if (why == NULL && s->state == SESSION_STARTED)
		why = "runs already";
	if (why != NULL) {
		refuse(a, s, why);
		return;
	}
	/*
	 * Refused when it is STARTING already: the command then waits with it.
	 */
	if (add(s, o, a) != NULL)
		(void)!session_start(s);
}

/* Whether the session has started and not ended; if not, it is answered. */
static bool
has_started(const struct session *s, const struct answer *a)
{
	const char *why = not_running(s);

	if (why == NULL && s->state != SESSION_STARTED)
		why = "has not started yet";
	if (why != NULL)
		refuse(a, s, why);
	return why == NULL;
}

static void
do_flush(struct session *s, const struct session_order *o,
    const struct answer *a)
{
	struct session_command *c;

	if (!has_started(s, a))
		return;
	if ((c = add(s, o, a)) == NULL)
		return;
	c->timeout_ms = o->timeout_ms != 0 ? o->timeout_ms :
	    config_flush_timeout_ms(s->config);
	flush_start(s, c->timeout_ms, FLUSH_EXPLICIT, flushed, c);
}

static void
do_stop(struct session *s, const struct session_order *o,
    const struct answer *a)
{
	bool over = s->state == SESSION_DISABLED;

	if (s->cloning != NULL && !o->discard) {
		refuse(a, s, "is a snapshot that is still being written");
		return;
	}
	if (s->state == SESSION_CLONED && !o->discard) {
		refuse(a, s, "is a snapshot of another: it does not change "
		    "any more, but discarding it frees its memory");
		return;
	}
	if (over && !o->discard) {
		a->done(a->arg, s->id, NULL);
		return;
	}
	if (add(s, o, a) == NULL)
		return;
	s->stopped_on_command = true;
	/* A clone without a file is freed; one that is written ends first. */
	if (over || (s->state == SESSION_CLONED && s->file == NULL))
		discard(s);
	else if (o->discard)
		session_end_for_discard(s);
	else
		session_disable(s, NULL);
}

static void
do_cut(struct session *s, const struct session_order *o,
    const struct answer *a)
{
	if (!has_started(s, a))
		return;
	*o->segment = cut_ask(s, SERVICE_CUT_REQUEST);
	a->done(a->arg, s->id, NULL);
}

/* ---- whom it is for ---- */

static struct session *
find(struct service *sv, const struct session_order *o)
{
	struct session *s = o->name != NULL ?
	    session_find_by_name(sv, o->name) : session_find(sv, o->id);

	return s != NULL && principal_may(o->who, &s->owner) ? s : NULL;
}

/*
 * One answer for another user's session and for none: whether others have
 * such a session is their secret.
 */
static void
refuse_absent(const struct answer *a, const struct session_order *o)
{
	char text[SESSION_COMMAND_TEXT], name[256];

	if (o->name != NULL)
		snprintf(text, sizeof(text), "There is no session \"%s\", or "
		    "it has another owner", log_escape(name, sizeof(name),
		    o->name, strlen(o->name)));
	else
		snprintf(text, sizeof(text), "There is no session %llu, or it "
		    "has another owner", (unsigned long long)o->id);
	a->done(a->arg, 0, text);
}

static void
log_order(const struct session *s, const struct session_order *o)
{
	static const char *const verbs[] = {
		[SESSION_DO_START] = "start",
		[SESSION_DO_FLUSH] = "flush",
		[SESSION_DO_STOP] = "stop",
		[SESSION_DO_CUT] = "cut",
	};
	char whose[160];

	log_limited(&s->service->session_log, loop_now_ms(), LOG_LEVEL_INFO,
	    "session %llu: %s%s on command of %s", (unsigned long long)s->id,
	    verbs[o->verb], o->discard ? " and discard" : "",
	    principal_text(o->who, whose, sizeof(whose)));
}

void
session_command(struct service *sv, const struct session_order *o,
    session_command_fn done, void *arg)
{
	const struct answer a = { done, arg };
	struct session *s = find(sv, o);

	if (s == NULL) {
		refuse_absent(&a, o);
		return;
	}
	log_order(s, o);
	switch (o->verb) {
	case SESSION_DO_START:
		do_start(s, o, &a);
		break;
	case SESSION_DO_FLUSH:
		do_flush(s, o, &a);
		break;
	case SESSION_DO_STOP:
		do_stop(s, o, &a);
		break;
	case SESSION_DO_CUT:
		do_cut(s, o, &a);
		break;
	}
}
