/*
 * Identity of this process, description and clocks of its machine: for services
 * that do not see them.
 */
#include <unistd.h>

#include "client/tracing/port/port_dial.h"
#include "client/tracing/port/port_internal.h"
#include "protos/fields.h"
#include "transport/clock/clock_jumps.h"
#include "transport/clock/system_info.h"
#include "transport/clock/this_machine.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/service_names.h"

/* From one measurement of the clocks to the next. */
#define CLOCKS_MS 30000u

void
port_put_identity(struct port *p, struct pb_writer *w)
{
	char clocks[THIS_MACHINE_CLOCKS_MAX], name[256];
	const char *given = p->options.machine_name;
	size_t mark;

	if (p->reach == PORT_REACH_DIRECT)
		return; /* the service asks its kernel */
	mark = ipc_frame_begin(w, 0, IPC_SET_PEER_IDENTITY);
	this_machine_clocks(clocks, sizeof(clocks));
	this_machine_name(name, sizeof(name));
	pb_put_int(w, SetPeerIdentity_pid, getpid());
	pb_put_int(w, SetPeerIdentity_uid, (int64_t)getuid());
	pb_put_string(w, SetPeerIdentity_machine_name,
	    given != NULL ? given : name);
	if (clocks[0] != '\0')
		pb_put_string(w, SetPeerIdentity_machine_id_hint, clocks);
	/* A service with the same clocks counts us to its own machine. */
	if (clocks[0] != '\0' && given == NULL)
		pb_put_string(w, SetPeerIdentity_tributary_clocks, clocks);
	if (p->reach == PORT_REACH_TUNNEL)
		pb_put_uint(w, SetPeerIdentity_tributary_forwarded, 1);
	ipc_frame_end(w, mark);
}

/*
 * Over UNIX sockets, too: `tributary forward` may be behind one.  Perfetto's
 * service has no such method and gets no description.
 */
void
port_introduce_machine(struct port *p)
{
	struct pb_writer w;
	char name[256];

	this_machine_name(name, sizeof(name));
	pb_writer_init(&w);
	system_info_introduce(&w, p->options.machine_name != NULL ?
	    p->options.machine_name : name);
	if (!w.failed)
		(void)port_wire_call(&p->wire, PORT_INIT_MACHINE, w.data,
		    w.len, true);
	pb_writer_done(&w);
}

/* ---- Clocks ---- */

static void
call(struct port *p, const struct pb_writer *w)
{
	if (w->failed || port_wire_call(&p->wire, PORT_SYNC_CLOCK, w->data,
	    w->len, true) == 0)
		port_clocks_end(p);
}

void
port_machine_introduced(struct port *p, const struct port_event *e)
{
	struct pb_reader r;
	struct pb_field f;
	bool wanted = false;

	pb_init(&r, e->data, e->len);
	while (e->ok && pb_next(&r, &f))
		if (f.number == PRODUCER_MACHINE_TO_BE_MEASURED &&
		    f.wire == PB_VARINT)
			wanted = f.value != 0;
	if (!wanted || p->measures_clocks)
		return;
	p->measures_clocks = true;
	/* Without it jumps are found by the next measurement. */
	p->jumps_fd = clock_jumps_open();
	clock_exchange_init(&p->clocks, CLOCKS_MS, port_now_ms());
}

void
port_clock_replied(struct port *p, const struct port_event *e)
{
	struct pb_writer w;

	if (!p->measures_clocks)
		return;
	pb_writer_init(&w);
	if (clock_exchange_reply(&p->clocks, e->ok, port_now_ms(), &w))
		call(p, &w);
	pb_writer_done(&w);
}

void
port_clocks_run(struct port *p, bool readable)
{
	struct pb_writer w;
	uint64_t now = port_now_ms();

	if (!p->measures_clocks)
		return;
	if (readable && clock_jumps_read(p->jumps_fd))
		clock_exchange_jumped(&p->clocks, now);
	if (p->clocks.phase != CLOCK_EXCHANGE_RESTS || p->clocks.due_ms > now)
		return;
	pb_writer_init(&w);
	clock_exchange_begin(&p->clocks, now, &w);
	call(p, &w);
	pb_writer_done(&w);
}

bool
port_clocks_due(const struct port *p, uint64_t *due_ms)
{
	*due_ms = p->clocks.due_ms;
	return p->measures_clocks && p->clocks.phase == CLOCK_EXCHANGE_RESTS;
}

void
port_clocks_end(struct port *p)
{
	p->measures_clocks = false;
	if (p->jumps_fd >= 0)
		close(p->jumps_fd);
	p->jumps_fd = -1;
}
