#include "relay/uplink/open_call.h"

#include <stdlib.h>
#include <string.h>

#include "relay/outbox/outbox.h"
#include "relay/settings/settings.h"
#include "transport/clock/system_info.h"
#include "transport/link/link_wire.h"
#include "transport/wire/pb_writer.h"

#define OPENED(why) TRIBUTARY__LINK_OPENED__WHY__##why

/* Appends SystemInfo. */
static void
describe_machine(struct pb_writer *w, const struct relay_settings *s)
{
	struct system_info info;

	system_info_collect(&info, s->machine_name);
	system_info_encode(w, &info);
}

static void
set_id(ProtobufCBinaryData *out, protobuf_c_boolean *has,
    const uint8_t id[LINK_ID_BYTES])
{
	*has = true;
	out->data = (uint8_t *)id;
	out->len = LINK_ID_BYTES;
}

static void
set_state(Tributary__LinkOpen *m, const struct outbox_state *st)
{
	set_id(&m->link_id, &m->has_link_id, st->link_id);
	set_id(&m->relay_id, &m->has_relay_id, st->relay_id);
	if (st->resumable)
		set_id(&m->collector_id, &m->has_collector_id,
		    st->collector_id);
	m->has_last_sent = m->has_last_acknowledged = m->has_received = true;
	m->last_sent = st->last_sent;
	m->last_acknowledged = st->last_acked;
	m->received = st->received;
}

uint8_t *
uplink_open_encode(const struct outbox_state *st,
    const struct relay_settings *s, const struct uplink_moving *moving,
    size_t *len)
{
	Tributary__LinkCompression zstd = TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD;
	Tributary__LinkOpen m = TRIBUTARY__LINK_OPEN__INIT;
	struct pb_writer info;
	uint8_t *out = NULL;

	pb_writer_init(&info);
	describe_machine(&info, s);
	if (info.failed)
		goto out;
	m.has_version = true;
	m.version = LINK_VERSION;
	set_state(&m, st);
	m.has_can_move = m.can_move = moving->can;
	if (moving->moves) {
		m.has_moves = m.moves = true;
		m.has_buffer_tag = m.has_consumed_in_all = true;
		m.buffer_tag = moving->buffer_tag;
		m.consumed_in_all = moving->consumed;
	}
	if (s->compression_level > 0) {
		m.n_compression = 1;
		m.compression = &zstd;
	}
	m.machine_id_hint = s->machine_id;
	m.machine_name = s->machine_name;
	m.has_system_info = true;
	m.system_info.data = info.data;
	m.system_info.len = info.len;
	m.software = (char *)"tributary-relay " TRIBUTARY_VERSION;
	out = malloc(tributary__link_open__get_packed_size(&m));
	if (out != NULL)
		*len = tributary__link_open__pack(&m, out);
out:
	pb_writer_done(&info);
	return out;
}

/* NULL: nothing is. */
static const char *
what_is_wrong(const Tributary__LinkOpened *m, const struct outbox_state *st,
    const struct relay_settings *s)
{
	if (m->version != LINK_VERSION)
		return "speaks another version of the link";
	if (m->collector_id.len != LINK_ID_BYTES)
		return "does not say which collector it is";
	if (m->window < LINK_BLOCK_MAX)
		return "has a window that is smaller than a block";
	if (m->compression != TRIBUTARY__LINK_COMPRESSION__LINK_PLAIN &&
	    (m->compression != TRIBUTARY__LINK_COMPRESSION__LINK_ZSTD ||
		s->compression_level == 0))
		return "wants a compression that was not offered";
	if (m->why == OPENED(MOVED) && (!st->resumable ||
	    m->received != st->last_acked))
		return "goes on with the link where it cannot be";
	if (m->why != OPENED(RESUMED))
		return NULL;
	if (!st->resumable || memcmp(m->collector_id.data, st->collector_id,
		LINK_ID_BYTES) != 0)
		return "resumes a link that it did not have";
	if (m->received > st->last_sent || m->received < st->last_acked)
		return "resumes the link where it cannot be";
	return NULL;
}

Tributary__LinkOpened *
uplink_opened_decode(const uint8_t *data, size_t len,
    const struct outbox_state *st, const struct relay_settings *s,
    const char **wrong)
{
	Tributary__LinkOpened *m;

	m = tributary__link_opened__unpack(NULL, len, data);
	if (m == NULL) {
		*wrong = "answered Open with a message that cannot be parsed";
		return NULL;
	}
	if ((*wrong = what_is_wrong(m, st, s)) != NULL) {
		uplink_opened_free(m);
		return NULL;
	}
	return m;
}

void
uplink_opened_free(Tributary__LinkOpened *m)
{
	if (m != NULL)
		tributary__link_opened__free_unpacked(m, NULL);
}

uint32_t
uplink_opened_cause(const Tributary__LinkOpened *m)
{
	/*
	 * A reason that is newer than we are: the collector gave the link up.
	 */
	switch ((int)m->why) {
	case OPENED(NEW):
	case OPENED(COLLECTOR_RESTARTED):
		return TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_COLLECTOR_RESTARTED;
	}
	return TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_GRACE;
}

const char *
uplink_opened_text(const Tributary__LinkOpened *m)
{
	switch ((int)m->why) {
	case OPENED(RESUMED):
		return "resumed";
	case OPENED(MOVED):
		return "goes on there: another collector had it before";
	case OPENED(NEW):
		return "a new link";
	case OPENED(COLLECTOR_RESTARTED):
		return "a new link: the collector was started again, or is "
		    "another";
	case OPENED(GRACE_OVER):
		return "a new link: we were away for longer than the "
		    "collector waits";
	case OPENED(GIVEN_UP):
		return "a new link: the collector had given up the old one";
	}
	return "a new link";
}
