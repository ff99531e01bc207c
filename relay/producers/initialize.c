/* InitializeConnection: a producer's identity and its wishes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"
#include "transport/socket/peer.h"

/* Labels of its data: from the kernel, or as claimed where that cannot say. */
static void
read_identity(struct local *l)
{
	const struct rpc_claimed_identity *claimed =
	    rpc_conn_identity(l->server.conn);
	const struct peer *p = rpc_conn_peer(l->server.conn);

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
check_init(const struct local *l, const struct producer_init *q)
{
	const struct relay_limits *lim = &l->owner->settings->limits;

	if (strlen(q->name) > lim->max_name_bytes)
		return "producer_name is longer than limits.max_name_bytes";
	if (strlen(q->sdk_version) > lim->max_name_bytes)
		return "sdk_version is longer than limits.max_name_bytes";
	if (l->owner->n_locals >= lim->max_producers)
		return "limits.max_producers is reached";
	return NULL;
}

static const char *
begin(struct local *l, struct rpc_call call, const struct producer_init *q)
{
	struct producers *ps = l->owner;
	const char *why = check_init(l, q);

	if (why != NULL)
		return why;
	l->name = strdup(q->name);
	l->sdk_version = strdup(q->sdk_version);
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
	l->memory = q->emulated ? MEMORY_EMULATED : MEMORY_OURS;
	l->scrape = q->scrape;
	l->shm_size_hint = q->shm_size_hint;
	l->page_size_hint = q->page_size_hint;
	local_adopt(l, call, q);
	local_set_state(l, LOCAL_SILENT);
	TAILQ_INSERT_TAIL(&ps->locals, l, link);
	ps->n_locals++;
	if (l->shm != NULL)
		local_keep(l);
	return NULL;
}

enum rpc_verdict
local_initialize(void *owner, struct rpc_call call,
    const struct producer_init *q)
{
	struct local *l = owner;
	const char *why;
	char name[80], what[96];

	if (!local_may_begin(l))
		return RPC_AGAIN;
	log_escape(name, sizeof(name), q->name, strlen(q->name));
	if ((why = begin(l, call, q)) != NULL) {
		snprintf(what, sizeof(what), "producer %s", name);
		local_log(l, what, why);
		return RPC_REJECT;
	}
	producer_init_reply(call, q, l->shm != NULL);
	log_debug("%s: producer %u is %s",
	    rpc_conn_peer(l->server.conn)->text, l->channel, name);
	if (l->owner->open)
		local_announce(l);
	return RPC_OK;
}
