/* Settings of a relay taken together: how it dials, and checks. */
#include <stdio.h>
#include <string.h>

#include "relay/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/connect/dial.h"
#include "transport/connect/dial_flags.h"
#include "transport/connect/placement.h"
#include "transport/socket/addr.h"

#define MEMORY_LEAST (1u << 20)
#define MEMORY_MOST  (1ull << 40)
/* A spool of less is full before it is of use. */
#define SPOOL_LEAST  (1u << 20)
#define LEVEL_MOST   19
#define DAY_MS       86400000u
#define HOUR_MS      3600000u
/* A socket's path has 107 bytes; ours have a name in the folder. */
#define STATE_DIR_MOST 90

void
relay_settings_dial(const struct relay_settings *s, struct dial_options *how)
{
	*how = (struct dial_options){
		.tls_dir = s->tls_dir,
		.tls_name = s->tls_name,
		.sni_machine = s->sni_machine,
		.machine_name = s->machine_name,
		.allow_tls12 = s->allow_tls12,
		.ssh_command = s->ssh_command,
		.service = "relay",
	};
}

static int
check_collector(const struct relay_settings *s, const char *to, char *err,
    size_t err_size)
{
	struct dial_options how;
	char why[ADDR_TEXT_MAX + 256];
	struct addr a;
	size_t i;

	if (addr_parse(&a, to, why, sizeof(why)) != 0)
		return FAILURE(err, err_size, "the collector's address: %s",
		    why);
	for (i = 0; i < s->n_producer_sockets; i++) {
		if (strcmp(s->producer_sockets[i], a.text) != 0)
			continue;
		return FAILURE(err, err_size, "%s is where local producers "
		    "connect to this relay; it cannot be the collector, too: "
		    "name another socket for producers with "
		    "PERFETTO_PRODUCER_SOCK_NAME or --producer-socket", a.text);
	}
	relay_settings_dial(s, &how);
	return dial_flags_check(&how, &a, err, err_size);
}

static int
check_destination(const struct relay_settings *s, char *err, size_t err_size)
{
	size_t order[PLACEMENT_MAX], i;

	if (s->n_to == 0 && s->dialled && s->protocol == RELAY_CLASSIC_ONLY)
		return FAILURE(err, err_size, "dialled and protocol: CLASSIC "
		    "do not go together: Perfetto's own way needs a connection "
		    "for each producer, which a collector that dials cannot "
		    "give");
	if (s->n_to == 0 && s->dialled)
		return 0;
	if (s->n_to == 0)
		return FAILURE(err, err_size, "where is the collector?  Say "
		    "--to ADDR (in the settings: to: \"ADDR\"; in the "
		    "environment: PERFETTO_RELAY_SOCK_NAME), as in "
		    "--to tls://collector:7443; or --dialled when it connects "
		    "to this machine");
	if (s->dialled)
		return FAILURE(err, err_size, "dialled says that the collector "
		    "connects to this machine, but %s is where this relay is "
		    "to connect: leave one of them out", s->to[0]);
	for (i = 0; i < s->n_to; i++)
		if (check_collector(s, s->to[i], err, err_size) != 0)
			return -1;
	if (s->n_to == 1)
		return 0;
	return placement_order(s->machine_name, (const char *const *)s->to,
	    s->n_to, order, err, err_size);
}

static int
check_sizes(const struct relay_settings *s, char *err, size_t err_size)
{
	if (s->memory_bytes < MEMORY_LEAST || s->memory_bytes > MEMORY_MOST)
		return FAILURE(err, err_size, "memory: %llu KiB; it is at "
		    "least 1024 KiB and at most 1 TiB",
		    (unsigned long long)s->memory_bytes >> 10);
	if (s->spool_dir != NULL && s->spool_bytes < SPOOL_LEAST)
		return FAILURE(err, err_size, "spool: %llu KiB; it is at least "
		    "1024 KiB; leave its folder out for none",
		    (unsigned long long)s->spool_bytes >> 10);
	if (s->compression_level < 0 || s->compression_level > LEVEL_MOST)
		return FAILURE(err, err_size, "compression: %d is no level of "
		    "zstd: it is 1 to %d, or 0 for none", s->compression_level,
		    LEVEL_MOST);
	if (s->spool_dir != NULL && s->spool_dir[0] != '/')
		return FAILURE(err, err_size, "the spool's folder %s: name it "
		    "by its full path, beginning with /", s->spool_dir);
	if (s->state_dir[0] != '/' || strlen(s->state_dir) > STATE_DIR_MOST)
		return FAILURE(err, err_size, "the state folder %s: name it by "
		    "its full path, of at most %d bytes, beginning with /",
		    s->state_dir, STATE_DIR_MOST);
	return 0;
}

static int
check_times(const struct relay_settings *s, char *err, size_t err_size)
{
	if (s->min_retry_ms == 0 || s->min_retry_ms > s->max_retry_ms ||
	    s->max_retry_ms > HOUR_MS)
		return FAILURE(err, err_size, "min_retry_ms %llu and "
		    "max_retry_ms %llu: pauses grow from the first to the "
		    "second, are at least 1 and at most %u",
		    (unsigned long long)s->min_retry_ms,
		    (unsigned long long)s->max_retry_ms, HOUR_MS);
	if (s->clock_sync_ms < 100 || s->clock_sync_ms > DAY_MS)
		return FAILURE(err, err_size, "clock_sync_ms: %llu; it is at "
		    "least 100 and at most %u (a day)",
		    (unsigned long long)s->clock_sync_ms, DAY_MS);
	if (s->move_after_ms == 0 || s->move_after_ms > DAY_MS)
		return FAILURE(err, err_size, "move_after_ms: %llu; it is at "
		    "least 1 and at most %u (a day)",
		    (unsigned long long)s->move_after_ms, DAY_MS);
	return 0;
}

int
relay_settings_check(const struct relay_settings *s, char *err,
    size_t err_size)
{
	if (check_destination(s, err, err_size) != 0 ||
	    check_sizes(s, err, err_size) != 0)
		return -1;
	return check_times(s, err, err_size);
}
