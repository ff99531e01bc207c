#include "client/command/ask_once.h"

#include <stdbool.h>
#include <stdio.h>

#include "client/library/consumer_loop.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/plain_text.h"
#include "transport/connect/dial_flags.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

#define ERROR_BYTES 2048

struct ask_once {
	const char *command;
	struct loop *loop;
	struct consumer *consumer;
	ask_once_fn ask;
	void *arg;
	bool ended;
	int status;
};

void
ask_once_end(struct ask_once *a, int status)
{
	if (a->ended)
		return;
	a->ended = true;
	a->status = status;
	loop_stop(a->loop);
}

void
ask_once_fail(struct ask_once *a, const char *sentence)
{
	if (a->ended)
		return;
	plain_printf(stderr, "%s: %s\n", a->command, sentence);
	ask_once_end(a, 1);
}

static void
connected_cb(void *arg)
{
	struct ask_once *a = arg;

	a->ask(a, a->consumer, a->arg);
}

static void
disconnected_cb(void *arg, const char *why)
{
	ask_once_fail(arg, why);
}

static void
late_cb(void *arg)
{
	ask_once_fail(arg, "the collector does not answer");
}

static const struct consumer_ops ops = {
	.connected = connected_cb,
	.disconnected = disconnected_cb,
};

int
ask_once(const char *command, const char *connect,
    const struct dial_options *how, ask_once_fn ask, void *arg)
{
	struct ask_once a = {
		.command = command,
		.ask = ask,
		.arg = arg,
		.status = 1,
	};
	struct loop_timer *late = NULL;
	char err[ERROR_BYTES];
	struct addr addr;

	snprintf(err, sizeof(err), "out of memory");
	if (connect == NULL)
		connect = addr_default_consumer();
	if (addr_parse(&addr, connect, err, sizeof(err)) < 0 ||
	    dial_flags_check(how, &addr, err, sizeof(err)) < 0 ||
	    (a.loop = loop_new()) == NULL)
		goto out;
	if ((late = loop_timer_new(a.loop, late_cb, &a)) == NULL)
		goto out;
	a.consumer = consumer_loop_new(a.loop, &(struct consumer_loop_setup){
	    .address = &addr, .how = how, .ops = &ops, .arg = &a }, err,
	    sizeof(err));
	if (a.consumer == NULL)
		goto out;
	loop_timer_set(late, ASK_ONCE_MS, 0);
	loop_run(a.loop);
	err[0] = '\0';

out:
	if (err[0] != '\0')
		plain_printf(stderr, "%s: %s\n", command, err);
	consumer_free(a.consumer);
	loop_timer_free(late);
	if (a.loop != NULL)
		loop_free(a.loop);
	return a.status;
}
