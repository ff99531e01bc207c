#include "service/port/control_port.h"

#include <stdlib.h>
#include <time.h>

#include "service/access/trust.h"
#include "service/model/model.h"
#include "service/port/control_internal.h"
#include "service/settings/settings.h"
#include "transport/loop/loop.h"
#include "transport/socket/roles.h"
#include "transport/wire/service_names.h"

/* Output in bytes that may wait for the peer before more is made. */
#define QUEUE_BYTES (256u * 1024u)
/* Parts made in one turn of the loop: others want their turn too. */
#define PARTS_PER_TURN 4u

uint64_t
control_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
end_question(struct control *p)
{
	p->question = NULL;
	p->call.conn = NULL;
	free(p->machines);
	free(p->sessions);
	pb_writer_done(&p->told);
	pb_writer_init(&p->told);
	p->machines = NULL;
	p->sessions = NULL;
}

/* Fills the next part; true when it is the last. */
static bool
make_part(struct control *p)
{
	pb_writer_reset(&p->part);
	if (!p->begun)
		p->question->head(p, &p->part);
	p->begun = true;
	for (;;) {
		if (p->entry.len == 0 && !p->question->entry(p, &p->entry))
			return true;
		if (p->part.len > 0 && p->part.len + p->entry.len >
		    CONTROL_PART_BYTES)
			return false;
		pb_put_raw(&p->part, p->entry.data, p->entry.len);
		p->part.failed = p->part.failed || p->entry.failed;
		pb_writer_reset(&p->entry);
	}
}

/* Sends parts as fast as the peer takes them: all machines are megabytes. */
static void
send_some(void *arg)
{
	struct control *p = arg;
	unsigned n;
	bool last;

	for (n = 0; p->question != NULL && n < PARTS_PER_TURN; n++) {
		if (rpc_conn_queued(p->conn) >= QUEUE_BYTES)
			return; /* drained() goes on */
		last = make_part(p);
		if (p->part.failed) {
			rpc_reject(p->call);
			end_question(p);
			return;
		}
		rpc_reply(p->call, p->part.data, p->part.len, !last, -1);
		if (last)
			end_question(p);
	}
	if (p->question != NULL)
		loop_defer(p->service->loop, &p->send_call, send_some, p);
}

void
control_answer(struct control *p, struct rpc_call call,
    const struct control_question *q)
{
	p->question = q;
	p->call = call;
	p->next = 0;
	p->begun = false;
	pb_writer_reset(&p->entry);
	send_some(p);
}

static void *
bind_cb(struct rpc_conn *c, void *arg)
{
	struct service *s = arg;
	size_t hard = (size_t)s->settings->limits.max_send_queue_kb * 1024;
	const struct peer *peer = rpc_conn_peer(c);
	struct control *p;

	if ((p = calloc(1, sizeof(*p))) == NULL) {
		rpc_conn_refuse(c, "the collector is out of memory");
		return NULL;
	}
	p->service = s;
	p->conn = c;
	principal_of_peer(&p->who, peer,
	    trust_roles(s->trust, peer, false) & ROLE_ADMIN);
	TAILQ_INIT(&p->commands);
	pb_writer_init(&p->told);
	pb_writer_init(&p->part);
	pb_writer_init(&p->entry);
	rpc_conn_set_limits(c, hard, hard / 2 < QUEUE_BYTES / 2 ? hard / 2 :
	    QUEUE_BYTES / 2);
	return p;
}

static void
gone_cb(void *ctx)
{
	struct control *p = ctx;

	loop_cancel(p->service->loop, p);
	control_commands_forget(p);
	end_question(p);
	pb_writer_done(&p->part);
	pb_writer_done(&p->entry);
	free(p);
}

/* New methods go last: a method's id is its position. */
static const struct rpc_method methods[] = {
	{ "QueryMachines", control_query_machines },
	{ "QuerySessions", control_query_sessions },
	{ "StartSession", control_start_session },
	{ "FlushSession", control_flush_session },
	{ "StopSession", control_stop_session },
	{ "QueryProducers", control_query_producers },
	{ "CutSession", control_cut_session },
	{ "QueryRecordings", control_query_recordings },
	{ "StartRecording", control_start_recording },
	{ "StopRecording", control_stop_recording },
	{ "RotateRecording", control_rotate_recording },
	{ "QueryMetrics", control_query_metrics },
	{ "Drain", control_drain },
};

void
control_port_init(struct rpc_service *out, struct service *s)
{
	*out = (struct rpc_service){
		.name = CONTROL_SERVICE,
		.methods = methods,
		.n_methods = sizeof(methods) / sizeof(methods[0]),
		.bind = bind_cb,
		.gone = gone_cb,
		.drained = send_some,
		.arg = s,
	};
}
