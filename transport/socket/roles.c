#include "transport/socket/roles.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* URIs below this one are issued by us alone, and name roles. */
#define OWN_URI_PREFIX "urn:tributary:"

static const struct {
	enum role role;
	const char *name;
} roles[] = {
	{ ROLE_PRODUCER, "producer" },
	{ ROLE_RELAY, "relay" },
	{ ROLE_CONSUMER, "consumer" },
	{ ROLE_ADMIN, "admin" },
};
#define N_ROLES (sizeof(roles) / sizeof(roles[0]))

const char *
role_name(enum role role)
{
	size_t i;

	for (i = 0; i < N_ROLES; i++)
		if (roles[i].role == role)
			return roles[i].name;
	return "?";
}

uint32_t
role_by_name(const char *name)
{
	size_t i;

	for (i = 0; i < N_ROLES; i++)
		if (strcasecmp(roles[i].name, name) == 0)
			return roles[i].role;
	return 0;
}

uint32_t
role_from_uri(const char *uri, size_t len)
{
	size_t i, ours = strlen(OWN_URI_PREFIX), n = strlen(ROLE_URI_PREFIX);

	if (len < ours || strncasecmp(uri, OWN_URI_PREFIX, ours) != 0)
		return 0;
	/*
	 * A misspelt prefix or role is a mistake of the issuer, which meant
	 * some role: the certificate must not get the default role.
	 */
	if (len < n || memcmp(uri, ROLE_URI_PREFIX, n) != 0)
		return ROLE_UNKNOWN;
	for (i = 0; i < N_ROLES; i++)
		if (strlen(roles[i].name) == len - n &&
		    memcmp(roles[i].name, uri + n, len - n) == 0)
			return roles[i].role;
	return ROLE_UNKNOWN;
}

uint32_t
roles_widen(uint32_t mask)
{
	if (mask & ROLE_RELAY)
		mask |= ROLE_PRODUCER;
	if (mask & ROLE_ADMIN)
		mask |= ROLE_CONSUMER;
	return mask;
}

static void
add_name(char *out, size_t out_size, const char *name)
{
	size_t at = strlen(out);

	snprintf(out + at, out_size - at, "%s%s", at > 0 ? ", " : "", name);
}

const char *
roles_text(uint32_t mask, char *out, size_t out_size)
{
	size_t i;

	*out = '\0';
	for (i = 0; i < N_ROLES; i++)
		if (mask & roles[i].role)
			add_name(out, out_size, roles[i].name);
	if (mask & ROLE_UNKNOWN)
		add_name(out, out_size, "unknown");
	if (*out == '\0')
		add_name(out, out_size, "nothing");
	return out;
}
