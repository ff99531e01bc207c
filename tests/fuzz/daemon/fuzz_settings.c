/*
 * A settings file: any text gives settings or a message, never both a success
 * and a limit of 0.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const struct settings *s)
{
	struct socket_permissions p;
	char err[256];

	if (s->limits.max_sessions == 0 || s->limits.max_connections == 0 ||
	    s->limits.max_producers == 0 || s->limits.max_producers > 65535 ||
	    s->limits.max_shm_kb == 0 || s->limits.max_shm_kb > 32768)
		abort();
	if (s->n_listen > SETTINGS_LISTEN_MAX)
		abort();
	/* What was accepted stays acceptable. */
	if (s->socket_permissions != NULL &&
	    socket_permissions_parse(&p, s->socket_permissions, err,
		sizeof(err)) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char err[SETTINGS_ERROR_SIZE] = "";
	struct settings s;

	if (settings_init(&s) != 0)
		return 0;
	if (settings_parse(&s, (const char *)data, size, "fuzz", err,
		sizeof(err)) == 0)
		check(&s);
	else if (err[0] == '\0' || memchr(err, '\0', sizeof(err)) == NULL)
		abort();
	settings_done(&s);
	return 0;
}
