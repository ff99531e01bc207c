/* InitializeConnection: who a producer is, and what it wants. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"
#include "transport/socket/peer.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"

/* Field numbers: wire-format.md, ipc/producer_port.proto. */
enum {
	INIT_PAGE_SIZE = 1,
	INIT_SHM_SIZE = 2,
	INIT_NAME = 3,
	INIT_SCRAPING = 4,
	INIT_PROVIDED = 6,
	INIT_SDK_VERSION = 8,
	SCRAPING_DISABLED = 2,
	INITED_PROVIDED = 1,
	INITED_PATCHING = 2,
	INITED_EMULATION = 3,
};

struct init_request {
	uint32_t page_size;
	uint32_t shm_size;
	uint32_t scraping;
	bool provided;
	const uint8_t *name; /* borrowed */
	size_t name_len;
	const uint8_t *sdk_version;
	size_t sdk_version_len;
};

static bool
parse_init(const uint8_t *args, size_t len, struct init_request *q)
{
	struct pb_reader r;
	struct pb_field f;

	memset(q, 0, sizeof(*q));
	pb_init(&r, args, len);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case INIT_PAGE_SIZE:
			q->page_size = (uint32_t)f.value;
			break;
		case INIT_SHM_SIZE:
			q->shm_size = (uint32_t)f.value;
			break;
		case INIT_SCRAPING:
			q->scraping = (uint32_t)f.value;
			break;
		case INIT_PROVIDED:
			q->provided = f.value != 0;
			break;
		case INIT_NAME:
			if (f.wire != PB_BYTES)
				return false;
			q->name = f.data;
			q->name_len = f.len;
			break;
		case INIT_SDK_VERSION:
			if (f.wire != PB_BYTES)
				return false;
			q->sdk_version = f.data;
			q->sdk_version_len = f.len;
			break;
		default:
			break;
		}
	}
	return !r.bad;
}

/* Who labels its data: the kernel, or what it says where nobody vouches. */
static void
read_identity(struct local *l)
{
	const struct rpc_claimed_identity *claimed =
	    rpc_conn_identity(l->conn);
	const struct peer *p = rpc_conn_peer(l->conn);

	l->uid = p->auth == PEER_UNIX ? (int32_t)p->uid : PEER_UID_UNKNOWN;
	l->pid = p->auth == PEER_UNIX ? p->pid : PEER_PID_UNKNOWN;
	if (!claimed->present || (p->kind == ADDR_UNIX && !p->forwarded))
		return;
	l->pid = claimed->pid;
	l->uid = claimed->uid;
	/* -1 stands for "no uid" in every trace reader. */
	if (l->uid == -1 || (l->uid == 0 && p->auth == PEER_NOBODY))
		l->uid = PEER_UID_UNKNOWN;
}

static const char *
check_init(const struct local *l, const struct init_request *q)
{
	const struct relay_limits *lim = &l->owner->settings->limits;

	if (q->name_len > lim->max_name_bytes)
		return "producer_name is longer than limits.max_name_bytes";
	if (q->sdk_version_len > lim->max_name_bytes)
		return "sdk_version is longer than limits.max_name_bytes";
	if (l->owner->n_locals >= lim->max_producers)
		return "limits.max_producers is reached";
	return NULL;
}

static const char *
begin(struct local *l, struct rpc_call call, const struct init_request *q)
{
	struct producers *ps = l->owner;
	const char *why = check_init(l, q);

	if (why != NULL)
		return why;
	l->name = strndup(q->name_len > 0 ? (const char *)q->name : "",
	    q->name_len);
	l->sdk_version = strndup(q->sdk_version_len > 0 ?
	    (const char *)q->sdk_version : "", q->sdk_version_len);
	if (l->name == NULL || l->sdk_version == NULL ||
	    local_join_talker(l) != 0 ||
	    (l->channel = ps->new_channel(ps->channel_arg)) == 0) {
		if (l->talker != NULL)
			local_leave_talker(l);
		free(l->name);
		free(l->sdk_version);
		l->name = l->sdk_version = NULL;
		return "out of memory";
	}
	read_identity(l);
	l->emulated = !rpc_conn_peer(l->conn)->can_pass_fds;
	l->scrape = q->scraping != SCRAPING_DISABLED;
	l->shm_size_hint = q->shm_size;
	l->page_size_hint = q->page_size;
	if (!l->emulated && q->provided)
		local_adopt(l, call, q->page_size);
	TAILQ_INSERT_TAIL(&ps->locals, l, link);
	ps->n_locals++;
	if (l->shm != NULL)
		orphans_keep(ps, l);
	return NULL;
}

enum rpc_verdict
local_initialize(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct local *l = ctx;
	struct init_request q;
	struct pb_writer w;
	const char *why;
	char name[80], what[96];

	if (!parse_init(args, len, &q))
		return RPC_BAD_ARGS;
	if (l->channel != 0)
		return RPC_REJECT;
	if (!local_may_begin(l))
		return RPC_AGAIN;
	log_escape(name, sizeof(name), q.name_len > 0 ? (const char *)q.name :
	    "", q.name_len);
	if ((why = begin(l, call, &q)) != NULL) {
		snprintf(what, sizeof(what), "producer %s", name);
		local_log(l, what, why);
		return RPC_REJECT;
	}
	pb_writer_init(&w);
	pb_put_uint(&w, INITED_PROVIDED, l->shm != NULL);
	pb_put_uint(&w, INITED_PATCHING, 1);
	pb_put_uint(&w, INITED_EMULATION, l->emulated);
	rpc_reply_written(call, &w);
	pb_writer_done(&w);
	log_debug("%s: producer %u is %s", rpc_conn_peer(l->conn)->text,
	    l->channel, name);
	if (l->owner->open)
		local_announce(l);
	return RPC_OK;
}
