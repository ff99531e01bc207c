#include "client/record/ask.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/command/ask_once.h"
#include "client/record/options.h"
#include "client/show/state_text.h"
#include "client/tracing/consumer/consumer.h"
#include "protos/service_state.pb-c.h"

#define SPEAKER "tributary"

enum { IS_DETACHED = 0, CANNOT_TELL = 1, NOT_DETACHED = 2 };

struct asking {
	struct ask_once *ask;
	struct consumer *consumer;
	const struct record_options *options;
};

static void
print(struct asking *q, const uint8_t *data, size_t len)
{
	Perfetto__Protos__TracingServiceState *m;

	if (q->options->query_raw) {
		if (len > 0)
			(void)!fwrite(data, len, 1, stdout);
		return;
	}
	m = perfetto__protos__tracing_service_state__unpack(NULL, len, data);
	if (m == NULL) {
		ask_once_fail(q->ask, "the collector's answer makes no "
		    "sense");
		return;
	}
	state_text_print(stdout, m, q->options->query_long);
	perfetto__protos__tracing_service_state__free_unpacked(m, NULL);
}

static void
state_cb(void *arg, const uint8_t *data, size_t len)
{
	struct asking *q = arg;

	if (data == NULL) {
		ask_once_fail(q->ask, "the collector does not tell its "
		    "state");
		return;
	}
	print(q, data, len);
	if (fflush(stdout) != 0 || ferror(stdout))
		ask_once_fail(q->ask, strerror(errno));
	else
		ask_once_end(q->ask, 0);
}

static void
ask_state(struct ask_once *a, struct consumer *c, void *arg)
{
	struct asking *q = arg;

	q->ask = a;
	consumer_query_service_state(c, false, state_cb, q);
}

int
record_ask_state(const struct record_options *o)
{
	struct asking q = { .options = o };

	return ask_once(SPEAKER, o->line.connect, &o->line.how, ask_state, &q);
}

static void
detached_cb(void *arg, bool ok)
{
	struct asking *q = arg;

	if (ok)
		ask_once_end(q->ask, IS_DETACHED);
	else
		ask_once_fail(q->ask, "the session could not be detached "
		    "again, and ends");
}

static void
attached_cb(void *arg, const uint8_t *config, size_t len)
{
	struct asking *q = arg;

	if (config == NULL)
		ask_once_end(q->ask, NOT_DETACHED);
	else
		consumer_detach(q->consumer, q->options->key, detached_cb, q);
}

static void
ask_is_detached(struct ask_once *a, struct consumer *c, void *arg)
{
	struct asking *q = arg;

	q->ask = a;
	q->consumer = c;
	consumer_attach(c, q->options->key, attached_cb, q);
}

int
record_ask_is_detached(const struct record_options *o)
{
	struct asking q = { .options = o };

	return ask_once(SPEAKER, o->line.connect, &o->line.how, ask_is_detached, &q);
}
