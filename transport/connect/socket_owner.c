#include "transport/connect/socket_owner.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "transport/base/failure.h"
#include "transport/connect/listener.h"
#include "transport/socket/addr.h"

/* The part before the next colon or the end; false when empty or too long. */
static bool
take_part(const char **text, char *out, size_t out_size)
{
	size_t len = strcspn(*text, ":");

	if (len == 0 || len >= out_size)
		return false;
	memcpy(out, *text, len);
	out[len] = '\0';
	*text += len;
	if (**text == ':')
		(*text)++;
	return true;
}

bool
socket_owner_take(const char **text, char group[SOCKET_OWNER_GROUP_MAX],
    unsigned *mode)
{
	char digits[8];

	if (!take_part(text, group, SOCKET_OWNER_GROUP_MAX) ||
	    !take_part(text, digits, sizeof(digits)) ||
	    strlen(digits) != 4 || strspn(digits, "01234567") != 4)
		return false;
	*mode = (unsigned)strtoul(digits, NULL, 8);
	return true;
}

bool
socket_owner_has_file(const struct addr *a)
{
	return a->kind == ADDR_UNIX &&
	    ((const struct sockaddr_un *)&a->sa)->sun_path[0] != '\0';
}

int
socket_owner_set(struct listener *l, const char *group, unsigned mode,
    char *err, size_t err_size)
{
	const struct group *g;

	if ((g = getgrnam(group)) == NULL)
		return FAILURE(err, err_size, "there is no group \"%s\", which "
		    "--set-socket-permissions names", group);
	return listener_set_permissions(l, mode, (long)g->gr_gid, err,
	    err_size);
}
