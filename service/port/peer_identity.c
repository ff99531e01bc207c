#include "service/port/peer_identity.h"

#include <stdio.h>
#include <string.h>

#include "service/access/principal.h"
#include "service/access/trust.h"
#include "service/machine/machine_presence.h"
#include "service/model/model.h"
#include "transport/rpc/rpc_host.h"
#include "transport/socket/peer.h"
#include "transport/tls/tls.h"

#define FNV_START 0xcbf29ce484222325u

static uint64_t
fnv1a(uint64_t h, const char *data, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (uint8_t)data[i]) * 0x100000001b3u;
	return h;
}

static uint32_t
id_of(const char *text, size_t len)
{
	uint32_t id = (uint32_t)fnv1a(FNV_START, text, len);

	return id == 0 ? 1 : id;
}

/* Bytes of the address in the peer's text that come before ":port". */
static size_t
host_len(const struct peer *p)
{
	const char *colon = strrchr(p->text, ':');

	return colon != NULL ? (size_t)(colon - p->text) : strlen(p->text);
}

bool
peer_names_machine(const struct trust *t, const struct peer *p)
{
	return p->kind != ADDR_SSH && trust_may_claim_machine(t, p);
}

uint64_t
peer_count_key(const struct peer *p)
{
	struct principal who;

	if (p->auth == PEER_NOBODY)
		return p->addr_hash;
	principal_of_peer(&who, p, false);
	return principal_key(&who);
}

/* The machine of a certificate: its id is made of both names. */
static void
machine_of_certificate(const char *cert, const char *hint, const char *name,
    struct peer_machine *out)
{
	const char *what = *hint != '\0' ? hint : name;
	uint64_t h;

	/* The NUL between them: "ab" + "c" is not "a" + "bc". */
	h = fnv1a(FNV_START, cert, strlen(cert) + 1);
	h = fnv1a(h, what, strlen(what));
	out->id = (uint32_t)h == 0 ? 1 : (uint32_t)h;
	snprintf(out->name, sizeof(out->name), "%s",
	    *name != '\0' ? name : cert);
	snprintf(out->owner, sizeof(out->owner), "certificate %s", cert);
}

/* Fills in the id and the name of a machine, not its owner. */
static void
machine_of_claim(const char *hint, const char *name, struct peer_machine *out)
{
	const char *what = *hint != '\0' ? hint : name;

	out->id = id_of(what, strlen(what));
	snprintf(out->name, sizeof(out->name), "%s", name);
}

/* Whether a UNIX peer is on the host: no tunnel, or one without labels. */
static bool
speaks_for_host(const struct peer *p, const char *hint, const char *name)
{
	return !p->forwarded || (*hint == '\0' && *name == '\0');
}

static void
machine_of_address(const struct peer *p, const char *hint, const char *name,
    struct peer_machine *out)
{
	out->id = *hint != '\0' ? id_of(hint, strlen(hint)) :
	    id_of(p->text, host_len(p));
	if (*name != '\0')
		snprintf(out->name, sizeof(out->name), "%s", name);
	else
		snprintf(out->name, sizeof(out->name), "%.*s",
		    (int)host_len(p), p->text);
}

void
peer_machine_of(const struct trust *t, const struct peer *p,
    const struct rpc_claimed_identity *claimed, struct peer_machine *out)
{
	const char *hint = claimed->present ? claimed->machine_id_hint : "";
	const char *name = claimed->present ? claimed->machine_name : "";

	memset(out, 0, sizeof(*out));
	out->named = *name != '\0' && peer_names_machine(t, p);
	if (p->auth == PEER_CERT) {
		machine_of_certificate(p->cert->name, hint,
		    peer_names_machine(t, p) ? name : "", out);
		return;
	}
	switch (p->kind) {
	case ADDR_UNIX:
		out->is_host = speaks_for_host(p, hint, name);
		if (out->is_host)
			break;
		machine_of_claim(hint, *name != '\0' ? name : hint, out);
		snprintf(out->owner, sizeof(out->owner), "uid %u",
		    (unsigned)p->uid);
		break;
	case ADDR_SSH:
		name = p->machine_name != NULL ? p->machine_name : p->text;
		machine_of_claim(hint, name, out);
		snprintf(out->owner, sizeof(out->owner), "dial %s", name);
		break;
	case ADDR_TCP:
	case ADDR_VSOCK:
	case ADDR_TLS:
		machine_of_address(p, hint, name, out);
		break;
	}
}

void
peer_labels(const struct peer *p, const struct rpc_claimed_identity *claimed,
    int32_t *uid, int32_t *pid)
{
	bool plain = p->auth == PEER_NOBODY && p->kind != ADDR_SSH;

	*uid = p->auth == PEER_UNIX ? (int32_t)p->uid : PEER_UID_UNKNOWN;
	*pid = p->auth == PEER_UNIX ? p->pid : PEER_PID_UNKNOWN;
	if (!claimed->present || (p->kind == ADDR_UNIX && speaks_for_host(p,
		claimed->machine_id_hint, claimed->machine_name)))
		return;
	*pid = claimed->pid;
	*uid = claimed->uid;
	/* -1 stands for "no uid" in every trace reader. */
	if (*uid == -1 || (*uid == 0 && plain))
		*uid = PEER_UID_UNKNOWN;
}

static struct machine *
machine_behind(struct service *s, const struct peer *p,
    const struct peer_machine *of, bool relay)
{
	struct machine_claim c = {
		.id = of->id,
		.name = of->name,
		.named = of->named,
		.relay = relay,
		.owner = of->owner[0] != '\0' ? of->owner : NULL,
		.peer = peer_count_key(p),
		.together = !peer_names_machine(s->trust, p),
	};

	return of->is_host ? &s->host : machine_claim(s->machines, &c);
}

/*
 * A peer that a dial connects and that has no machine id hint, as Perfetto's
 * SDK, is on the machine that other peers of the dial named.  NULL: no such
 * machine.
 */
static struct machine *
machine_of_dial(struct service *s, const struct peer *p,
    const struct rpc_claimed_identity *claimed, const struct peer_machine *of)
{
	if (p->kind != ADDR_SSH ||
	    (claimed->present && claimed->machine_id_hint[0] != '\0'))
		return NULL;
	return machine_of_owner(s->machines, of->owner);
}

static bool
is_on_our_clocks(const struct service *s,
    const struct rpc_claimed_identity *claimed)
{
	return claimed->present && claimed->clocks[0] != '\0' &&
	    strcmp(claimed->clocks, s->clocks) == 0;
}

bool
producer_may_be_elsewhere(const struct service *s, struct rpc_conn *c)
{
	const struct peer *p = rpc_conn_peer(c);

	return (p->auth != PEER_UNIX || p->forwarded) &&
	    !is_on_our_clocks(s, rpc_conn_identity(c));
}

/*
 * Whether a peer is unauthenticated and not dialled, and either claims no
 * identity or claims to run on the host's clocks.
 */
static bool
is_host_by_default(const struct service *s, const struct peer *p,
    const struct rpc_claimed_identity *claimed)
{
	if (p->auth != PEER_NOBODY || p->kind == ADDR_SSH)
		return false;
	return !claimed->present || is_on_our_clocks(s, claimed);
}

void
producer_identity(struct service *s, struct rpc_conn *c, int32_t *uid,
    int32_t *pid, struct machine **machine)
{
	const struct rpc_claimed_identity *claimed = rpc_conn_identity(c);
	const struct rpc_claimed_identity nothing = { .present = false };
	const struct peer *p = rpc_conn_peer(c);
	struct peer_machine of = { .is_host = true };

	if (is_host_by_default(s, p, claimed))
		claimed = &nothing;
	else
		peer_machine_of(s->trust, p, claimed, &of);
	peer_labels(p, claimed, uid, pid);
	*machine = machine_of_dial(s, p, claimed, &of);
	if (*machine == NULL)
		*machine = machine_behind(s, p, &of, false);
}

const char *
producer_machine_claim(const struct service *s, const struct rpc_conn *c)
{
	const struct rpc_claimed_identity *claimed = rpc_conn_identity(c);

	return claimed->present && claimed->machine_name[0] != '\0' &&
	    peer_names_machine(s->trust, rpc_conn_peer(c)) ?
	    claimed->machine_name : NULL;
}

struct machine *
relay_machine(struct service *s, struct rpc_conn *c)
{
	const struct peer *p = rpc_conn_peer(c);
	struct peer_machine of;

	peer_machine_of(s->trust, p, rpc_conn_identity(c), &of);
	return machine_behind(s, p, &of, true);
}

/* Copies the label, cut before a character that does not fit. */
static void
copy_label(char *out, size_t size, const char *s)
{
	size_t n = strlen(s);

	if (n >= size) {
		n = size - 1;
		while (n > 0 && (s[n] & 0xc0) == 0x80)
			n--;
	}
	memcpy(out, s, n);
	out[n] = '\0';
}

struct machine *
link_machine_of(struct service *s, struct rpc_conn *c, const char *hint,
    const char *name, const char **why)
{
	struct rpc_claimed_identity claimed = *rpc_conn_identity(c);
	const struct peer *p = rpc_conn_peer(c);
	struct peer as = *p;
	struct peer_machine of;

	if (hint != NULL && *hint != '\0')
		copy_label(claimed.machine_id_hint,
		    sizeof(claimed.machine_id_hint), hint);
	if (name != NULL && *name != '\0')
		copy_label(claimed.machine_name, sizeof(claimed.machine_name),
		    name);
	claimed.present = true;
	/* A relay names its machine, like a peer through a tunnel. */
	as.forwarded = true;
	peer_machine_of(s->trust, &as, &claimed, &of);
	if (of.is_host) {
		*why = "a relay on a UNIX socket has to say which machine it "
		    "speaks for (machine_id_hint or machine_name): it cannot "
		    "be told from this one";
		return NULL;
	}
	*why = "too many machines or no memory";
	return machine_behind(s, p, &of, true);
}

/*
 * "certificate door", "uid 1000", "dial kiosk", "unauthenticated"; returns out.
 */
static const char *
authenticated_text(const struct peer *p, char *out, size_t out_size)
{
	switch (p->auth) {
	case PEER_CERT:
		snprintf(out, out_size, "certificate %s", p->cert->name);
		break;
	case PEER_UNIX:
		snprintf(out, out_size, "uid %u", (unsigned)p->uid);
		break;
	case PEER_NOBODY:
		if (p->kind == ADDR_SSH)
			snprintf(out, out_size, "dial %s",
			    p->machine_name != NULL ? p->machine_name :
			    p->text);
		else
			snprintf(out, out_size, "unauthenticated");
		break;
	}
	return out;
}

void
peer_tell_machine(const struct peer *p, struct machine *m,
    enum machine_reach reach, const char *software)
{
	char authenticated[160];
	struct machine_visitor v = {
		.reach = reach,
		.address = p->text,
		.authenticated = authenticated_text(p, authenticated,
		    sizeof(authenticated)),
		.software = software,
	};

	machine_presence_came(m, &v);
}
