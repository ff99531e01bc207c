/* Describes this machine to a service that no relay describes it to. */
#include <unistd.h>

#include "client/library/producer_internal.h"
#include "transport/base/log.h"
#include "transport/clock/system_info.h"
#include "transport/clock/this_machine.h"
#include "transport/rpc/rpc_client.h"
#include "transport/rpc/sync_clock.h"
#include "transport/wire/pb_reader.h"

static void
measure_clocks(struct producer *p)
{
	p->clocks = sync_clock_new(p->loop, p->rpc, PRODUCER_SYNC_CLOCK,
	    PRODUCER_CLOCKS_MS);
	if (p->clocks == NULL)
		log_warn("no memory or no descriptor to measure the service's "
		    "clocks: timestamps may be off");
}

static void
introduced_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct producer *p = arg;
	struct pb_reader r;
	struct pb_field f;
	bool wanted = false;

	if (fd >= 0)
		close(fd);
	if (!ok)
		return;
	PB_FOREACH(&f, &r, msg, len)
		if (f.number == PRODUCER_MACHINE_TO_BE_MEASURED &&
		    f.wire == PB_VARINT)
			wanted = f.value != 0;
	if (wanted && p->clocks == NULL)
		measure_clocks(p);
}

void
producer_machine_begin(struct producer *p)
{
	char host[256];

	/*
	 * Over UNIX sockets, too: `tributary forward` may be behind one.
	 * Perfetto's service has no such method and gets no description.
	 */
	if (!rpc_client_offers(p->rpc, PRODUCER_INIT_MACHINE))
		return;
	this_machine_name(host, sizeof(host));
	pb_writer_reset(&p->scratch);
	system_info_introduce(&p->scratch,
	    p->machine_name != NULL ? p->machine_name : host);
	if (!p->scratch.failed)
		rpc_invoke(p->rpc, PRODUCER_INIT_MACHINE, p->scratch.data,
		    p->scratch.len, introduced_cb, p);
}

void
producer_machine_end(struct producer *p)
{
	sync_clock_free(p->clocks);
	p->clocks = NULL;
}
