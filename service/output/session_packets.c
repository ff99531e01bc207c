#include "service/output/session_packets.h"

#include <stdlib.h>
#include <unistd.h>

#include "protos/fields.h"
#include "service/config/config.h"
#include "service/model/model.h"
#include "service/packet/sequence_map.h"
#include "transport/loop/loop.h"
#include "transport/packet/service_packets.h"
#include "transport/wire/pb_writer.h"

typedef Perfetto__Protos__TraceConfig__BuiltinDataSource builtin_pb;

static int32_t
uid(void)
{
	return (int32_t)getuid();
}

void
session_packets_config(const struct session *s, struct pb_writer *w)
{
	const builtin_pb *b = s->config->pb->builtin_data_sources;

	if (b == NULL || !b->disable_trace_config)
		service_packets_trace_config(w, uid(), s->config->bytes,
		    s->config->len);
}

void
session_packets_attributes(const struct session *s, struct pb_writer *w)
{
	if (s->config->pb->trace_attributes != NULL)
		service_packets_trace_attributes(w, uid(), s->config->bytes,
		    s->config->len);
}

void
session_packets_provenance(struct session *s, struct pb_writer *w)
{
	size_t size = sequence_map_size(s->sequences), n;
	struct service_sequence *list = calloc(size + 1, sizeof(*list));

	if (list == NULL) {
		w->failed = true;
		return;
	}
	n = sequence_map_list(s->sequences, list, size);
	service_packets_provenance(w, uid(), loop_boottime_ns(), s->n_buffers,
	    list, n);
	free(list);
}

static bool
says_system_info(const struct session *s)
{
	const builtin_pb *b = s->config->pb->builtin_data_sources;

	return b == NULL || !b->disable_system_info;
}

void
session_packets_system_info(const struct session *s, struct pb_writer *w)
{
	if (says_system_info(s) && s->service->system_info != NULL)
		service_packets_remote_system_info(w, uid(), 0,
		    s->service->system_info, s->service->system_info_len);
}

/* A machine whose producers come without a relay has only a name. */
void
session_packets_machine(const struct session *s, const struct machine *m,
    struct pb_writer *w)
{
	struct pb_writer info;

	if (!says_system_info(s))
		return;
	pb_writer_init(&info);
	if (m->system_info_len > 0)
		pb_put_raw(&info, m->system_info, m->system_info_len);
	pb_put_string(&info, SystemInfo_machine_name, m->name);
	if (info.failed)
		w->failed = true;
	else
		service_packets_remote_system_info(w, uid(), m->id, info.data,
		    info.len);
	pb_writer_done(&info);
}
