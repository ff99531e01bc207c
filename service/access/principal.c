#include "service/access/principal.h"

#include <stdio.h>
#include <string.h>

#include "transport/base/log.h"
#include "transport/tls/tls.h"

void
principal_of_peer(struct principal *out, const struct peer *p, bool admin)
{
	memset(out, 0, sizeof(*out));
	out->auth = p->auth;
	out->uid = p->auth == PEER_UNIX ? p->uid : PEER_UID_UNKNOWN;
	out->admin = admin;
	if (p->auth == PEER_CERT)
		snprintf(out->name, sizeof(out->name), "%s", p->cert->name);
}

bool
principal_equal(const struct principal *a, const struct principal *b)
{
	return a->auth == b->auth && a->uid == b->uid &&
	    strcmp(a->name, b->name) == 0;
}

bool
principal_may(const struct principal *who, const struct principal *owner)
{
	return who->admin || principal_equal(who, owner);
}

uint64_t
principal_key(const struct principal *p)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
	const char *c;

	h = (h ^ (uint64_t)p->auth) * 0x100000001b3u;
	h = (h ^ p->uid) * 0x100000001b3u;
	for (c = p->name; *c != '\0'; c++)
		h = (h ^ (uint8_t)*c) * 0x100000001b3u;
	return h;
}

const char *
principal_text(const struct principal *p, char *out, size_t out_size)
{
	char name[72];

	switch (p->auth) {
	case PEER_UNIX:
		snprintf(out, out_size, "uid %u", (unsigned)p->uid);
		break;
	case PEER_CERT:
		log_escape(name, sizeof(name), p->name, strlen(p->name));
		snprintf(out, out_size, "the certificate \"%s\"", name);
		break;
	case PEER_NOBODY:
		snprintf(out, out_size, "an unknown peer");
		break;
	}
	return out;
}
