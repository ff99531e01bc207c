#include <stdlib.h>

#include "protos/fields.h"
#include "service/config/config.h"
#include "service/model/model.h"
#include "service/port/consumer_internal.h"
#include "service/session/flush.h"
#include "transport/wire/pb_reader.h"

#define FLUSHES_MAX 16u

struct flush_call {
	TAILQ_ENTRY(flush_call) link;
	struct consumer_port *port;
	struct rpc_call call;
};

static void
flush_done(struct session *s, bool success, void *arg)
{
	struct flush_call *f = arg;

	TAILQ_REMOVE(&f->port->flushes, f, link);
	f->port->n_flushes--;
	if (success)
		rpc_reply(f->call, NULL, 0, false, -1);
	else
		rpc_reject(f->call);
	free(f);
}

enum rpc_verdict
consumer_flush(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct consumer_port *p = ctx;
	struct pb_reader r;
	struct pb_field f;
	struct flush_call *fc;
	uint64_t timeout = 0, flags = 0;

	PB_FOREACH(&f, &r, args, len) {
		if (f.number == FlushRequest_timeout_ms)
			timeout = f.value;
		else if (f.number == FlushRequest_flags)
			flags = f.value;
	}
	if (r.bad)
		return RPC_BAD_ARGS;
	if (p->session == NULL ||
	    session_phase(p->session->state) != SESSION_PHASE_STARTED ||
	    p->n_flushes >= FLUSHES_MAX ||
	    (fc = calloc(1, sizeof(*fc))) == NULL)
		return RPC_REJECT;
	fc->port = p;
	fc->call = call;
	TAILQ_INSERT_TAIL(&p->flushes, fc, link);
	p->n_flushes++;
	/*
	 * Producers get the consumer's flags, but for the service's initiator.
	 */
	if ((flags & FLUSH_INITIATOR_MASK) == FLUSH_BY_SERVICE)
		flags &= ~(uint64_t)FLUSH_INITIATOR_MASK;
	flush_start(p->session, timeout == 0 || timeout > UINT32_MAX ?
	    config_flush_timeout_ms(p->session->config) : (uint32_t)timeout,
	    flags, flush_done, fc);
	return RPC_OK;
}

void
consumer_fail_flushes(struct consumer_port *p)
{
	struct flush_call *f;

	while ((f = TAILQ_FIRST(&p->flushes)) != NULL) {
		flush_forget(p->session, f);
		TAILQ_REMOVE(&p->flushes, f, link);
		rpc_reject(f->call);
		free(f);
	}
	p->n_flushes = 0;
}
