#include "tests/fuzz/stage/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/link/link.h"
#include "service/link/link_internal.h"
#include "service/port/consumer_port.h"
#include "service/port/control_port.h"
#include "service/port/link_port.h"
#include "service/port/producer_port.h"
#include "service/session/session.h"
#include "tests/fuzz/stage/turns.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

const struct peer stage_stranger = { .kind = ADDR_UNIX, .auth = PEER_UNIX,
	.can_pass_fds = true, .uid = 4001, .gid = 4001, .pid = 71,
	.text = "unix pid 71 uid 4001" };
const struct peer stage_neighbour = { .kind = ADDR_UNIX, .auth = PEER_UNIX,
	.can_pass_fds = true, .uid = 4002, .gid = 4002, .pid = 72,
	.text = "unix pid 72 uid 4002" };
const struct peer stage_remote = { .kind = ADDR_TCP, .auth = PEER_NOBODY,
	.uid = PEER_UID_UNKNOWN, .gid = PEER_UID_UNKNOWN, .addr_hash = 5,
	.net_hash = 5, .text = "10.0.0.1:1" };

static struct settings settings;

/* Machines of one letter are held back, and reach what they may have. */
static char held[] = "?";
static struct quota_setting quotas[] = { {
	.machine = held,
	.each_machine = { .bytes_per_second = 1 << 20, .burst = 2048,
		.max_producers = 2, .max_sequences = 12 },
	.each_producer = { .bytes_per_second = 65536, .burst = 4096,
		.max_data_sources = 3, .max_sequences = 7 },
	.drop = true,
	.guaranteed_percent = 50,
} };

static void
set_up_once(void)
{
	log_init("fuzz", LOG_LEVEL_ERROR);
	if (settings_init(&settings) != 0)
		abort();
	settings.limits.max_sessions = 6;
	settings.limits.max_sessions_per_uid = 4;
	settings.limits.max_buffers_per_session = 5;
	settings.limits.max_total_buffer_kb = 640;
	settings.limits.max_producers = 5;
	settings.limits.max_data_sources_per_producer = 4;
	settings.limits.max_writers_per_producer = 8;
	settings.limits.max_name_bytes = 32;
	settings.limits.max_send_queue_kb = 1024;
	settings.limits.max_shm_kb = 512;
	settings.quotas = quotas;
	settings.n_quotas = sizeof(quotas) / sizeof(quotas[0]);
}

void
stage_require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

void
stage_begin(struct stage *s)
{
	int i;

	if (settings.machine_name == NULL)
		set_up_once();
	memset(s, 0, sizeof(*s));
	if ((s->loop = turns_begin()) == NULL ||
	    (s->service = service_new(s->loop, &settings, -1)) == NULL)
		abort();
	producer_port_init(&s->ports[STAGE_PRODUCER], s->service);
	consumer_port_init(&s->ports[STAGE_CONSUMER], s->service);
	control_port_init(&s->ports[STAGE_CONTROL], s->service);
	link_port_init(&s->ports[STAGE_LINK], s->service);
	for (i = 0; i < STAGE_PORTS; i++)
		s->list[i] = &s->ports[i];
	s->entry = (struct wire_entry){ s->loop, s->list, STAGE_PORTS,
		&s->stats, NULL };
}

void
stage_set_grace(uint64_t ms)
{
	settings.link.grace_ms = ms;
}

void
stage_replace_collector(struct stage *s)
{
	struct links *t = s->service->links;
	struct link *l;

	t->collector_id[0]++;
	while ((l = TAILQ_FIRST(&t->all)) != NULL)
		link_end(l, LINK_GRACE_OVER, "another collector has its place");
}

void
stage_add(struct stage *s, struct wire *w)
{
	if (s->n_wires == STAGE_WIRES)
		abort();
	s->wires[s->n_wires++] = w;
}

void
stage_open(struct stage *s, struct wire *w, int port,
    const struct peer *peer)
{
	if (port == STAGE_PRODUCER && s->producers != NULL)
		wire_open(w, s->producers, 0, peer);
	else
		wire_open(w, &s->entry, (size_t)port, peer);
}

void
stage_turn(struct stage *s, unsigned n)
{
	size_t i;

	while (n-- > 0) {
		loop_run_once(s->loop);
		if (s->carry != NULL)
			s->carry(s->carry_arg);
		for (i = 0; i < s->n_wires; i++)
			wire_read(s->wires[i]);
		turns_pass();
	}
}

void
stage_linger(struct stage *s, const uint8_t how[2], unsigned most)
{
	unsigned n = 1 + how[0] % most;

	while (n-- > 0) {
		if (how[1] & 1)
			turns_skip();
		stage_turn(s, 1);
	}
}

void
stage_wait(struct stage *s, unsigned *turns, const char *what)
{
	stage_turn(s, 1);
	stage_require(turns_wait(turns), what);
}

/* Detached sessions wait for somebody who never comes. */
static void
free_detached(struct stage *s)
{
	struct session *session, *next;

	TAILQ_FOREACH_SAFE(session, &s->service->sessions, link, next)
		if (session->detach_key != NULL && !session->freeing)
			session_free(session);
}

static void
say_what_is_left(const struct stage *s)
{
	const struct service *service = s->service;
	const struct session *session;

	fprintf(stderr, "left: %zu connections, %zu producers, %zu sessions, "
	    "%zu links\n", s->stats.n_conns, service->n_producers,
	    service->n_sessions, service->links->n);
	TAILQ_FOREACH(session, &service->sessions, link)
		fprintf(stderr, "session %llu: %s%s%s%s, %zu instances\n",
		    (unsigned long long)session->id,
		    session_phase_name(session_phase(session->state)),
		    session->freeing ? ", being freed" : "",
		    session->file != NULL ? ", with a file" : "",
		    session->detach_key != NULL ? ", detached" : "",
		    session->n_instances);
}

void
stage_end(struct stage *s)
{
	struct service *service = s->service;
	unsigned turns = 0;

	s->n_wires = 0; /* they are closed */
	while (s->stats.n_conns > 0 || service->n_producers > 0 ||
	    service->n_sessions > 0 || service->links->n > 0) {
		free_detached(s);
		stage_turn(s, 1);
		if (!turns_wait(&turns)) {
			say_what_is_left(s);
			abort();
		}
	}
	/* Ports hear in a turn of its own that their connection is gone. */
	stage_turn(s, 1);
	stage_require(service->n_buffers == 0, "a buffer is left");
	stage_require(service->total_buffer_bytes == 0, "memory is left");
	stage_require(service->n_lossless == 0, "a file holds producers");
	stage_require(service->n_data_sources == 0, "a data source is left");
	service_free(service);
	loop_free(s->loop);
}
