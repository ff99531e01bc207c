#include "client/tunnel/producer_loop.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/tributary.h>

#include "client/tunnel/far_service.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

struct producer_loop {
	struct producer_loop_setup setup;
	struct event *turn; /* on libtributary's descriptor */
	struct far_service *far; /* NULL: the library dials */
	bool started;
};

/* Turns the library's clause, or what else is known, into a sentence. */
static void
say_why(struct producer_loop *p, int error, const char *why)
{
	char text[DIAL_TEXT_MAX + ADDR_TEXT_MAX];

	if (p->far != NULL && far_service_why(p->far, text, sizeof(text)))
		;
	else if (error != 0)
		dial_error_text(p->setup.address, error,
		    "PERFETTO_PRODUCER_SOCK_NAME", text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s: %s",
		    p->setup.address->text, why);
	p->setup.changed(p->setup.arg, false, text);
}

static void
state_cb(void *arg, bool connected, int error, const char *why)
{
	struct producer_loop *p = arg;

	if (p->setup.changed == NULL)
		return;
	if (connected)
		p->setup.changed(p->setup.arg, true, NULL);
	else
		say_why(p, error, why);
}

static void
log_cb(void *arg, enum tributary_log_level level, const char *sentence)
{
	char text[512];

	/* A service's words may be in it. */
	log_escape(text, sizeof(text), sentence, strlen(sentence));
	switch (level) {
	case TRIBUTARY_LOG_INFO:
		log_info("%s", text);
		break;
	case TRIBUTARY_LOG_WARNING:
		log_warn("%s", text);
		break;
	case TRIBUTARY_LOG_ERROR:
		log_error("%s", text);
		break;
	}
}

static int
connect_cb(void *arg)
{
	struct producer_loop *p = arg;

	return far_service_connect(p->far);
}

static void
turn_cb(evutil_socket_t fd, short what, void *arg)
{
	tributary_turn();
}

static int
start(struct producer_loop *p)
{
	const struct producer_loop_setup *s = &p->setup;
	struct tributary_options o = TRIBUTARY_OPTIONS;

	o.name = s->name;
	o.address = s->address->text;
	o.memory_bytes = s->memory_bytes;
	o.page_bytes = s->page_bytes;
	o.machine_name = s->machine_name;
	o.loop = TRIBUTARY_LOOP_PROGRAM;
	o.state = state_cb;
	o.log = log_cb;
	o.arg = p;
	if (far_service_is_needed(s->address)) {
		if ((p->far = far_service_new(s->address, s->how)) == NULL)
			return -1;
		o.connect = connect_cb;
		o.reach = s->address->kind == ADDR_SSH ?
		    TRIBUTARY_REACH_TUNNEL : TRIBUTARY_REACH_NETWORK;
	}
	errno = ENOMEM;
	p->started = tributary_start(&o) == 0;
	return p->started ? 0 : -1;
}

struct producer_loop *
producer_loop_new(struct loop *l, const struct producer_loop_setup *setup)
{
	struct producer_loop *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->setup = *setup;
	if (start(p) == 0)
		p->turn = event_new(loop_base(l), tributary_fd(),
		    EV_READ | EV_PERSIST, turn_cb, NULL);
	if (p->turn != NULL && event_add(p->turn, NULL) == 0)
		return p;
	producer_loop_free(p, 1);
	return NULL;
}

void
producer_loop_free(struct producer_loop *p, unsigned timeout_ms)
{
	if (p == NULL)
		return;
	p->setup.changed = NULL; /* it is known that it ends */
	if (p->turn != NULL)
		event_free(p->turn);
	if (p->started)
		tributary_stop(timeout_ms);
	far_service_free(p->far);
	free(p);
}
