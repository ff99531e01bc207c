/*
 * A settings file: any text gives settings or a message, never both a success
 * and a limit of 0.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "service/settings/settings.h"
#include "tests/fuzz/texts/texts.h"

static void
check(const struct settings *s)
{
	struct socket_permissions p;
	char err[SETTINGS_ERROR_SIZE] = "";
	size_t i;

	if (s->limits.max_sessions == 0 || s->limits.max_connections == 0 ||
	    s->limits.max_producers == 0 ||
	    s->limits.max_producers > SETTINGS_PRODUCERS_MOST ||
	    s->limits.max_shm_kb == 0 || s->limits.max_shm_kb > 32768)
		abort();
	if (s->limits.max_connection_memory_kb == 0 ||
	    s->limits.max_connection_memory_per_peer_kb == 0 ||
	    s->limits.max_data_sources == 0 || s->limits.bind_timeout_ms == 0)
		abort();
	if (s->n_listen > SETTINGS_LISTEN_MAX ||
	    s->n_rules > SETTINGS_RULES_MAX || s->n_dials > SETTINGS_DIALS_MAX)
		abort();
	for (i = 0; i < s->n_rules; i++)
		if (s->rules[i].name == NULL && s->rules[i].user == NULL &&
		    s->rules[i].group == NULL)
			abort();
	for (i = 0; i < s->n_dials; i++)
		if (s->dials[i].machine_name == NULL ||
		    s->dials[i].max_retry_ms == 0)
			abort();
	if (settings_check(s, err, sizeof(err)) != 0 && err[0] == '\0')
		abort();
	/* What was accepted stays acceptable. */
	if (s->socket_permissions != NULL &&
	    socket_permissions_parse(&p, s->socket_permissions, err,
		sizeof(err)) != 0)
		abort();
}

void
fuzz_settings(const uint8_t *data, size_t size)
{
	char err[SETTINGS_ERROR_SIZE] = "";
	struct settings s;

	if (settings_init(&s) != 0)
		return;
	if (settings_parse(&s, (const char *)data, size, "fuzz", err,
		sizeof(err)) == 0)
		check(&s);
	else if (err[0] == '\0' || memchr(err, '\0', sizeof(err)) == NULL)
		abort();
	settings_done(&s);
}
