#include "client/record/size_cuts.h"

#include <stdbool.h>
#include <stdlib.h>

#include "client/library/control.h"
#include "client/record/live_line.h"
#include "protos/control.pb-c.h"
#include "transport/loop/loop.h"

/* Pause after a cut that failed. */
#define AGAIN_MS 5000u

struct size_cuts {
	struct size_cuts_setup with;
	struct control *control; /* NULL: none is asked for now */
	uint64_t id;             /* of the session; 0: not known yet */
	uint32_t asked;          /* the segment that is cut; 0: none */
	uint64_t not_before_ms;
	bool told; /* that it fails */
};

struct size_cuts *
size_cuts_new(const struct size_cuts_setup *setup)
{
	struct size_cuts *c = calloc(1, sizeof(*c));

	if (c != NULL)
		c->with = *setup;
	return c;
}

void
size_cuts_free(struct size_cuts *c)
{
	if (c == NULL)
		return;
	control_free(c->control);
	free(c);
}

/* Each cut has a connection of its own: an idle one for hours may be lost. */
static void
end(struct size_cuts *c)
{
	control_free(c->control);
	c->control = NULL;
}

static void
fail(struct size_cuts *c, const char *why)
{
	if (!c->told)
		record_live_say(c->with.live, "a segment could not be cut by "
		    "its size, which is tried again: %s", why);
	c->told = true;
	c->asked = 0;
	c->not_before_ms = loop_now_ms() + AGAIN_MS;
	end(c);
}

static void
cut_cb(void *arg, const char *error)
{
	struct size_cuts *c = arg;

	if (error != NULL) {
		fail(c, error);
		return;
	}
	c->told = false;
	end(c);
}

static void
cut(struct size_cuts *c)
{
	const struct control_order order = { .verb = CONTROL_CUT, .id = c->id };

	control_command(c->control, &order, cut_cb, c);
}

static void
sessions_cb(void *arg, const struct Tributary__QuerySessionsReply *reply,
    const char *why)
{
	struct size_cuts *c = arg;

	if (reply == NULL || reply->n_sessions == 0) {
		fail(c, reply == NULL ? why : "the collector does not list "
		    "this session");
		return;
	}
	c->id = reply->sessions[0]->id;
	cut(c);
}

void
size_cuts_ask(struct size_cuts *c, uint32_t segment)
{
	const struct control_sessions which = { .name = c->with.session };
	char err[256];

	if (segment == c->asked || loop_now_ms() < c->not_before_ms)
		return;
	c->control = control_new(c->with.loop, c->with.addr, c->with.how, err,
	    sizeof(err));
	if (c->control == NULL) {
		fail(c, err);
		return;
	}
	c->asked = segment;
	if (c->id != 0)
		cut(c);
	else
		control_query_sessions(c->control, &which, sessions_cb, c);
}
