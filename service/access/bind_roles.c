#include "service/access/bind_roles.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "service/access/trust.h"
#include "transport/socket/peer.h"
#include "transport/socket/roles.h"
#include "transport/wire/service_names.h"

static const struct {
	const char *service;
	enum role role;
} takes[] = {
	{ "ProducerPort", ROLE_PRODUCER },
	{ "RelayPort", ROLE_RELAY },
	{ LINK_SERVICE, ROLE_RELAY },
	{ "ConsumerPort", ROLE_CONSUMER },
	{ CONTROL_SERVICE, ROLE_CONSUMER },
};

bool
bind_roles_permit(const struct trust *t, const char *service,
    const struct peer *p, bool plain_consumer, char *why, size_t why_size)
{
	uint32_t has = trust_roles(t, p, plain_consumer);
	size_t i;

	for (i = 0; i < sizeof(takes) / sizeof(takes[0]); i++) {
		if (strcmp(takes[i].service, service) != 0)
			continue;
		if (has & takes[i].role)
			return true;
		trust_refusal(p, has, takes[i].role, why, why_size);
		return false;
	}
	snprintf(why, why_size, "no role allows %s", service);
	return false;
}
