#include <unistd.h>

#include "protos/fields.h"
#include "service/link/link.h"
#include "service/model/model.h"
#include "service/port/control_internal.h"
#include "transport/base/log.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Draining is for whom the daemon is: its own user, root and admins. */
static bool
may_drain(const struct control *p)
{
	const struct principal daemon = { .auth = PEER_UNIX,
		.uid = geteuid() };

	return principal_may(&p->who, &daemon);
}

/* Producers of other machines that came without a relay of ours. */
static size_t
direct_producers(const struct service *s)
{
	const struct producer *p;
	size_t n = 0;

	TAILQ_FOREACH(p, &s->producers, link)
		n += p->machine->id != 0 && !p->linked;
	return n;
}

static void
answer(struct control *p, struct rpc_call call, const char *error)
{
	struct links_counts c;
	struct pb_writer w;

	links_count(p->service->links, &c);
	pb_writer_init(&w);
	if (error != NULL)
		pb_put_string(&w, DrainReply_error, error);
	pb_put_uint(&w, DrainReply_draining, links_drains(p->service->links));
	pb_put_uint(&w, DrainReply_links, c.connected);
	pb_put_uint(&w, DrainReply_links_cut, c.cut);
	pb_put_uint(&w, DrainReply_direct_producers,
	    direct_producers(p->service));
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
}

enum rpc_verdict
control_drain(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	bool asked = false, on = false;
	uint32_t after_ms = 0;
	struct control *p = port;
	struct pb_reader r;
	struct pb_field f;

	PB_FOREACH(&f, &r, args, len) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == DrainRequest_drain) {
			asked = true;
			on = f.value != 0;
		} else if (f.number == DrainRequest_after_ms) {
			after_ms = f.value > UINT32_MAX ? UINT32_MAX :
			    (uint32_t)f.value;
		}
	}
	if (r.bad)
		return RPC_BAD_ARGS;
	if (!may_drain(p))
		answer(p, call, "only the daemon's own user, root and admins "
		    "may drain it");
	else if (asked && links_drain(p->service->links, on, after_ms) != 0)
		answer(p, call, "the collector is out of memory");
	else
		answer(p, call, NULL);
	return RPC_OK;
}
