#include <stdlib.h>

#include "protos/fields.h"
#include "service/ingest/quota.h"
#include "service/model/model.h"
#include "service/port/control_internal.h"
#include "transport/wire/pb_reader.h"

static void
put_losses(struct pb_writer *w, const struct machine_contact *c)
{
	size_t i, mark;

	for (i = 0; i < LINK_LOSS_CAUSES; i++) {
		if (c->losses[i].chunks == 0 && c->losses[i].packets == 0 &&
		    c->losses[i].bytes == 0 && c->losses[i].times == 0)
			continue;
		mark = pb_nest_begin(w, MachineState_losses);
		pb_put_uint(w, LossCount_cause, i);
		pb_put_uint(w, LossCount_chunks, c->losses[i].chunks);
		pb_put_uint(w, LossCount_packets, c->losses[i].packets);
		pb_put_uint(w, LossCount_bytes, c->losses[i].bytes);
		if (c->losses[i].times != 0)
			pb_put_uint(w, LossCount_times, c->losses[i].times);
		pb_nest_end(w, mark);
	}
}

static uint64_t
reach_of(const struct machine *m)
{
	if (m->id == 0)
		return MachineState_HOST;
	switch (m->contact.reach) {
	case MACHINE_LINK:
		return MachineState_LINK;
	case MACHINE_CLASSIC:
		return MachineState_CLASSIC;
	case MACHINE_DIRECT:
		break;
	}
	return MachineState_DIRECT;
}

static uint64_t
state_of(const struct machine *m)
{
	if (m->contact.cut)
		return MachineState_CUT;
	return m->id == 0 || machine_is_connected(m) || m->n_producers > 0 ?
	    MachineState_CONNECTED : MachineState_GONE;
}

static void
put_clock(struct pb_writer *w, const struct machine_clock *c)
{
	if (!c->known)
		return;
	pb_put_sint(w, MachineState_clock_offset_ns, c->offset_ns);
	pb_put_uint(w, MachineState_clock_uncertainty_ns, c->uncertainty_ns);
	pb_put_uint(w, MachineState_clock_measured_ns, c->measured_ns);
	pb_put_uint(w, MachineState_round_trip_ns, c->round_trip_ns);
}

static void
put_contact(struct pb_writer *w, const struct machine_contact *c)
{
	if (c->address[0] != '\0')
		pb_put_string(w, MachineState_address, c->address);
	if (c->authenticated[0] != '\0')
		pb_put_string(w, MachineState_authenticated, c->authenticated);
	if (c->software[0] != '\0')
		pb_put_string(w, MachineState_software, c->software);
	pb_put_uint(w, MachineState_first_seen_ns, c->first_seen_ns);
	pb_put_uint(w, MachineState_connected_since_ns, c->connected_since_ns);
	pb_put_uint(w, MachineState_cut_since_ns, c->cut_since_ns);
	pb_put_uint(w, MachineState_reconnects, c->reconnects);
	pb_put_uint(w, MachineState_bytes_received, c->bytes_received);
	pb_put_uint(w, MachineState_bytes_unpacked, c->bytes_unpacked);
	pb_put_uint(w, MachineState_bytes_waiting, c->bytes_waiting);
	if (c->status_len > 0)
		pb_put_bytes(w, MachineState_relay, c->status, c->status_len);
	put_losses(w, c);
}

static void
put_machine(struct pb_writer *w, const struct service *s,
    const struct machine *m)
{
	size_t mark = pb_nest_begin(w, QueryMachinesReply_machines);
	const uint8_t *info = m->system_info;
	struct quota_counts quota;
	size_t len = m->system_info_len;

	if (m->id == 0) {
		info = s->system_info;
		len = s->system_info_len;
	}
	pb_put_uint(w, MachineState_id, m->id);
	if (m->name != NULL)
		pb_put_string(w, MachineState_name, m->name);
	pb_put_uint(w, MachineState_reach, reach_of(m));
	pb_put_uint(w, MachineState_state, state_of(m));
	if (info != NULL)
		pb_put_bytes(w, MachineState_system_info, info, len);
	pb_put_uint(w, MachineState_producers, m->n_producers);
	pb_put_uint(w, MachineState_data_sources, m->n_data_sources);
	put_contact(w, &m->contact);
	put_clock(w, &m->clock);
	quota_counts_of_machine(m, &quota);
	control_put_quota(w, MachineState_quota, &quota);
	pb_nest_end(w, mark);
}

static void
put_head(struct control *p, struct pb_writer *part)
{
	pb_put_uint(part, QueryMachinesReply_now_ns, control_now_ns());
}

/* The host, then the machines of the list that are still there. */
static bool
put_next(struct control *p, struct pb_writer *entry)
{
	const struct machine *m;

	if (p->next > p->n_entries)
		return false;
	m = p->next == 0 ? &p->service->host : machine_find(
	    p->service->machines, p->machines[p->next - 1]);
	p->next++;
	if (m != NULL)
		put_machine(entry, p->service, m);
	return true;
}

static const struct control_question question = {
	.head = put_head,
	.entry = put_next,
};

enum rpc_verdict
control_query_machines(void *port, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct control *p = port;

	if (!pb_well_formed(args, len))
		return RPC_BAD_ARGS;
	if (p->question != NULL)
		return RPC_REJECT;
	p->machines = calloc(MACHINES_MAX, sizeof(*p->machines));
	if (p->machines == NULL)
		return RPC_REJECT;
	p->n_entries = machine_table_ids(p->service->machines, p->machines);
	control_answer(p, call, &question);
	return RPC_OK;
}
