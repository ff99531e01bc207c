#include "client/fleet/drain.h"

#include <stdio.h>
#include <string.h>

#include "client/command/control_ask.h"
#include "client/library/control.h"
#include "protos/control.pb-c.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/base/size_duration.h"
#include "transport/loop/loop.h"

#define AFTER_MS   12000u
#define TIMEOUT_MS 300000u
#define TIME_MOST_MS 86400000u
/* Time between two looks at how far it is. */
#define LOOK_MS 250u

static const char help[] =
    "Usage: tributary fleet drain --fleet FILE NAME...\n"
    "       tributary fleet drain [--connect ADDR]\n"
    "           [--undo] [--after TIME] [--timeout TIME]\n"
    "\n"
    "Has the relays of these collectors go to others, and waits until they have;\n"
    "then the collectors can be upgraded, or removed.  Nothing is lost: a relay\n"
    "leaves between two packets, and sends the rest to the next collector, where\n"
    "the same recordings go on.  A collector drains until it is told not to, or\n"
    "ends; meanwhile /readyz of its tributary-web is 404.\n"
    "\n"
    "  NAME                  of a collector in FILE\n"
    "      --undo            drain them no longer\n"
    "      --after TIME      let each relay be for so long first, so that an\n"
    "                        HAProxy in front sees that they drain.  0s where\n"
    "                        relays have a list of collectors.  Default: 12s\n"
    "      --timeout TIME    wait so long for all to be gone.  Default: 5m\n"
    COMMAND_FLEET_HELP
    COMMAND_CONSUMER_HELP
    "\n"
    "Exit status: 0 when no relay is left; 1 when some are, or a collector could\n"
    "not be asked.\n";

struct drain {
	struct control_ask ask;
	bool undo;
	uint64_t after_ms;
	uint64_t timeout_ms;
	uint64_t until_ms; /* loop_now_ms() */
	size_t n_left;     /* collectors that are waited for */
};

static int
take_time(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	uint64_t *out = (uint64_t *)((char *)options + flag->at);
	char why[256];

	if (size_duration_parse_long_ms(text, out, why, sizeof(why)) != 0)
		return FAILURE(err, err_size, "--%s: %s", flag->name, why);
	if (*out > TIME_MOST_MS)
		return FAILURE(err, err_size, "--%s is at most 1d",
		    flag->name);
	return 0;
}

static const struct flag flags[] = {
	COMMAND_FLEET_FLAGS(offsetof(struct drain, ask.line)),
	{ "undo", FLAG_BOOL, .at = offsetof(struct drain, undo) },
	{ "after", FLAG_VALUE, .take = take_time,
	    .at = offsetof(struct drain, after_ms) },
	{ "timeout", FLAG_VALUE, .take = take_time,
	    .at = offsetof(struct drain, timeout_ms) },
	{ .name = NULL },
};

static const struct control_program program = {
	.flags = COMMAND("fleet drain", flags, help),
	.foreign_advice = "the collector at this address is not a tributaryd "
	    "that can be drained (Perfetto's traced, or an older one)",
};

/* ---- the order ---- */

static void
ordered_cb(void *arg, const Tributary__DrainReply *reply, const char *why)
{
	if (reply != NULL && reply->error != NULL)
		control_ask_answer(arg, NULL, reply->error);
	else
		control_ask_answer(arg, reply == NULL ? NULL : &reply->base,
		    why);
}

static void
order(struct control_peer *p)
{
	const struct drain *d = p->ask->arg;
	const struct control_drain_order o = { .drain = !d->undo,
		.after_ms = (uint32_t)d->after_ms };

	control_drain(p->control, &o, ordered_cb, p);
}

/* ---- waiting ---- */

static const char *
name_of(const struct control_peer *p)
{
	return p->is->name != NULL ? p->is->name : "the collector";
}

static const Tributary__DrainReply *
reply_of(const struct control_peer *p)
{
	return (const Tributary__DrainReply *)p->reply;
}

/* Ends the wait for this collector. */
static void
finish(struct control_peer *p, const char *failure)
{
	struct drain *d = p->ask->arg;

	if (failure != NULL)
		control_ask_missed(p, failure);
	if (failure != NULL)
		p->ask->status = COMMAND_FAILED;
	loop_timer_clear(p->late);
	if (--d->n_left == 0)
		loop_stop(p->ask->loop);
}

static void
looked_cb(void *arg, const Tributary__DrainReply *reply, const char *why)
{
	struct control_peer *p = arg;
	const struct drain *d = p->ask->arg;
	char text[256];

	if (reply == NULL) {
		finish(p, why);
	} else if (reply->links == 0) {
		finish(p, NULL);
	} else if (loop_now_ms() >= d->until_ms) {
		snprintf(text, sizeof(text), "%llu %s not left, %s; it goes on "
		    "draining: wait for it with the same command, or end it "
		    "with --undo", (unsigned long long)reply->links,
		    reply->links == 1 ? "relay has" : "relays have",
		    d->timeout_ms <= d->after_ms ?
		    "as --timeout is no longer than --after" :
		    "and --timeout is over");
		finish(p, text);
	} else {
		loop_timer_set(p->late, LOOK_MS, 0);
	}
}

static void
look(struct control_peer *p)
{
	control_drain(p->control, NULL, looked_cb, p);
}

static void
wait_for_all(struct drain *d)
{
	struct control_ask *r = &d->ask;
	size_t i;

	r->overdue = look;
	for (i = 0; i < r->collectors.n; i++)
		d->n_left += r->peers[i].reply != NULL;
	for (i = 0; i < r->collectors.n; i++)
		if (r->peers[i].reply != NULL)
			look(&r->peers[i]);
	loop_run(r->loop);
}

/* ---- which ---- */

/* Leaves out the collectors that no word names.  -1: an error was printed. */
static int
choose(struct control_ask *r)
{
	const struct collector *c;
	char text[COLLECTOR_NAME_MAX + 128];
	size_t i, n;

	if (r->collectors.n == 1 && r->line.n_words == 0)
		return 0;
	if (r->line.n_words == 0)
		return control_ask_refuse(r, "which collector? Say its name in "
		    "the fleet's file: never all of them at once");
	for (i = 0; i < r->collectors.n; i++)
		r->peers[i].skip = true;
	for (n = 0; n < r->line.n_words; n++) {
		for (i = 0; i < r->collectors.n; i++) {
			c = &r->collectors.list[i];
			if (c->name != NULL &&
			    strcmp(c->name, r->line.words[n]) == 0)
				break;
		}
		if (i == r->collectors.n) {
			snprintf(text, sizeof(text), "there is no collector "
			    "\"%.*s\" among those that --fleet or --connect "
			    "names", (int)COLLECTOR_NAME_MAX,
			    r->line.words[n]);
			return control_ask_refuse(r, text);
		}
		r->peers[i].skip = false;
	}
	return 0;
}

static void
print(const struct control_peer *p, bool undo)
{
	const Tributary__DrainReply *reply = reply_of(p);

	if (undo)
		plain_printf(stdout, "%s takes relays again\n", name_of(p));
	else
		plain_printf(stdout, "%s drains: %llu %s to leave\n",
		    name_of(p), (unsigned long long)reply->links,
		    reply->links == 1 ? "relay is" : "relays are");
	if (!undo && reply->direct_producers > 0)
		plain_printf(stdout, "%s: %llu producers of other machines "
		    "have no relay of ours, and stay until it ends\n",
		    name_of(p), (unsigned long long)reply->direct_producers);
	fflush(stdout);
}

static int
run(struct drain *d)
{
	struct control_ask *r = &d->ask;
	size_t i;

	r->arg = d;
	d->until_ms = loop_now_ms() + d->timeout_ms;
	if (choose(r) != 0)
		return COMMAND_FAILED;
	if (!control_ask(r, order))
		return r->status;
	for (i = 0; i < r->collectors.n; i++)
		if (r->peers[i].reply != NULL)
			print(&r->peers[i], d->undo);
	if (d->undo)
		return r->status;
	wait_for_all(d);
	if (r->status == COMMAND_OK)
		puts("all have left");
	return r->status;
}

int
fleet_drain_main(int argc, char **argv)
{
	struct drain d = { .after_ms = AFTER_MS, .timeout_ms = TIMEOUT_MS };
	int status;

	status = control_ask_init(&d.ask, &program, argc, argv);
	if (status >= 0)
		return status;
	status = run(&d);
	control_ask_done(&d.ask);
	return status;
}
