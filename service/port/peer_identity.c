#include "service/port/peer_identity.h"

#include <stdio.h>
#include <string.h>

#include "service/session/service.h"
#include "transport/peer.h"
#include "transport/rpc_host.h"

static uint64_t
fnv1a(const char *data, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (uint8_t)data[i]) * 0x100000001b3u;
	return h;
}

/* Bytes of the address in the peer's text that come before ":port". */
static size_t
host_len(const struct peer *p)
{
	const char *colon = strrchr(p->text, ':');

	return colon != NULL ? (size_t)(colon - p->text) : strlen(p->text);
}

uint32_t
peer_machine_id(const struct peer *p,
    const struct rpc_claimed_identity *claimed)
{
	const char *hint = claimed->machine_id_hint;
	uint32_t id;

	if (claimed->present && *hint != '\0')
		id = (uint32_t)fnv1a(hint, strlen(hint));
	else
		id = (uint32_t)fnv1a(p->text, host_len(p));
	return id == 0 ? 1 : id;
}

void
peer_machine_name(const struct peer *p,
    const struct rpc_claimed_identity *claimed, char *out, size_t out_size)
{
	if (claimed->present && claimed->machine_name[0] != '\0')
		snprintf(out, out_size, "%s", claimed->machine_name);
	else
		snprintf(out, out_size, "%.*s", (int)host_len(p), p->text);
}

static struct machine *
machine_behind(struct service *s, const struct peer *p,
    const struct rpc_claimed_identity *claimed)
{
	char name[SERVICE_MACHINE_NAME_MAX + 1];

	peer_machine_name(p, claimed, name, sizeof(name));
	return service_machine(s, peer_machine_id(p, claimed), name);
}

void
producer_identity(struct service *s, struct rpc_conn *c, int32_t *uid,
    int32_t *pid, struct machine **machine)
{
	const struct rpc_claimed_identity *claimed = rpc_conn_identity(c);
	const struct peer *p = rpc_conn_peer(c);

	if (p->kind == ADDR_UNIX) {
		*uid = (int32_t)p->uid;
		*pid = p->pid;
		*machine = &s->host;
	} else if (!claimed->present) {
		*uid = PEER_UID_UNKNOWN;
		*pid = PEER_PID_UNKNOWN;
		*machine = &s->host;
	} else {
		/* -1 stands for "no uid" in every trace reader. */
		*uid = claimed->uid == -1 ? PEER_UID_UNKNOWN : claimed->uid;
		*pid = claimed->pid;
		*machine = machine_behind(s, p, claimed);
	}
}

struct machine *
relay_machine(struct service *s, struct rpc_conn *c)
{
	const struct peer *p = rpc_conn_peer(c);

	if (p->kind == ADDR_UNIX)
		return &s->host;
	return machine_behind(s, p, rpc_conn_identity(c));
}
