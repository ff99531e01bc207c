/* Saying upward that there is a producer. */
#include "protos/fields.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "transport/wire/pb_writer.h"

/*
 * While offline, at most 64 new producers with a trigger, each with at most
 * 4 KiB of descriptors, are announced.
 */
#define HASTY_MAX       64u
#define HASTY_BYTES_MAX 4096u

void
local_put_producer(struct pb_writer *w, const struct local *l)
{
	pb_put_string(w, LinkProducer_name, l->name);
	pb_put_int(w, LinkProducer_pid, l->pid);
	pb_put_int(w, LinkProducer_uid, l->uid);
	if (l->sdk_version[0] != '\0')
		pb_put_string(w, LinkProducer_sdk_version, l->sdk_version);
}

void
local_announce(struct local *l)
{
	struct local_source *ds;
	struct pb_writer w;

	pb_writer_init(&w);
	local_put_producer(&w, l);
	if (w.failed) {
		rpc_conn_close(l->server.conn, "out of memory");
		pb_writer_done(&w);
		return;
	}
	local_set_state(l, LOCAL_ANNOUNCED);
	local_put(l, LINK_UP_OPEN, w.data, w.len);
	pb_writer_done(&w);
	/*
	 * No writer is bound: buffers are of what was agreed upward, and that
	 * is forgotten before a producer is announced again.
	 */
	TAILQ_FOREACH(ds, &l->sources, link)
		local_put(l, LINK_UP_REGISTER_SOURCE,
		    ds->descriptor.encoded, ds->descriptor.len);
}

void
local_announce_for_trigger(struct local *l)
{
	struct producers *ps = l->owner;

	if (l->state != LOCAL_SILENT || !ps->away)
		return;
	if (ps->hasty >= HASTY_MAX || l->descriptor_bytes > HASTY_BYTES_MAX) {
		local_log(l, "a trigger", "the collector is not there, and "
		    "too many wait for it");
		return;
	}
	ps->hasty++;
	local_announce(l);
}
