#include "service/settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "service/settings/settings_quota.h"
#include "service/settings/settings_recording.h"
#include "service/settings/settings_trust.h"
#include "transport/base/failure.h"
#include "transport/connect/socket_owner.h"
#include "transport/socket/roles.h"

/* The machine's memory, in KiB. */
static uint64_t
memory_kb(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	long page = sysconf(_SC_PAGESIZE);

	if (pages <= 0 || page <= 0)
		return 2 * 1024 * 1024;
	return (uint64_t)pages * (uint64_t)page / 1024;
}

static char *
find_machine_name(void)
{
	const char *env = getenv("PERFETTO_MACHINE_NAME");
	struct utsname u;

	if (env != NULL && *env != '\0')
		return strdup(env);
	return strdup(uname(&u) == 0 ? u.sysname : "Linux");
}

int
settings_init(struct settings *s)
{
	memset(s, 0, sizeof(*s));
	s->log_level = LOG_LEVEL_INFO;
	s->lossless = true;
	s->trace_file_mode = 0600;
	s->overload_lag_ms = 50;
	s->limits = (struct limits){
		.max_sessions = 64,
		.max_sessions_per_uid = 16,
		.max_buffers_per_session = 128,
		.max_total_buffer_kb = memory_kb() / 2,
		.max_trace_duration_ms = 7ull * 24 * 3600 * 1000,
		.max_producers = 65535,
		.max_data_sources_per_producer = 4096,
		.max_writers_per_producer = 32767,
		.max_name_bytes = 1024,
		.max_connections = 66000,
		.max_consumers_per_uid = 256,
		.max_send_queue_kb = 4096,
		.max_shm_kb = 32768,
		.max_connections_per_peer = 16384,
		.max_handshakes = 4096,
		.max_handshakes_per_peer = 2048,
		.handshake_timeout_ms = 10000,
		.bind_timeout_ms = 30000,
		.stalled_timeout_ms = 60000,
		.max_connection_memory_kb = memory_kb() / 8,
		.max_connection_memory_per_peer_kb = memory_kb() / 32,
		.max_data_sources = 1000000,
		.max_data_sources_per_peer = 100000,
		.max_buffer_kb_per_consumer = memory_kb() / 2,
		.min_free_memory_kb = memory_kb() / 32,
	};
	s->link = (struct link_setting){
		.grace_ms = 60000,
		.end_wait_ms = 5000,
		.window_kb = 1024,
		.max_commands_kb = 4096,
		.max_links = 16384,
		.max_links_per_peer = 4096,
		.max_producers_per_link = 4096,
		.compression = true,
	};
	s->certificate_default = ROLE_PRODUCER | ROLE_RELAY;
	if ((s->machine_name = find_machine_name()) == NULL)
		return -1;
	return 0;
}

void
settings_done(struct settings *s)
{
	size_t i;

	for (i = 0; i < s->n_listen; i++)
		free(s->listen[i].address);
	free(s->listen);
	for (i = 0; i < s->n_permits; i++)
		free(s->permits[i].address);
	free(s->permits);
	settings_trust_done(s);
	settings_quota_done(s);
	settings_recordings_done(s);
	free(s->file);
	free(s->trace_dir);
	free(s->socket_permissions);
	free(s->user);
	free(s->machine_name);
	memset(s, 0, sizeof(*s));
}

int
settings_set_log_level(struct settings *s, const char *word, char *err,
    size_t err_size)
{
	char shown[64];

	if (log_level_parse(word, &s->log_level) == 0)
		return 0;
	log_escape(shown, sizeof(shown), word, strlen(word));
	snprintf(err, err_size, "\"%s\" is no log level: it is one of error, "
	    "warn, info, debug", shown);
	return -1;
}

/* what: "the user", for the sentence on an empty value. */
static int
set_name(char **slot, const char *value, const char *what, char *err,
    size_t err_size)
{
	char *copy;

	if (*value == '\0')
		return FAILURE(err, err_size, "%s has no name", what);
	if ((copy = strdup(value)) == NULL)
		return FAILURE(err, err_size, "no memory");
	free(*slot);
	*slot = copy;
	return 0;
}

int
settings_set_trace_dir(struct settings *s, const char *path, char *err,
    size_t err_size)
{
	return set_name(&s->trace_dir, path, "the trace directory", err,
	    err_size);
}

int
settings_set_trace_file_mode(struct settings *s, const char *text, char *err,
    size_t err_size)
{
	char shown[64];

	if (strlen(text) == 4 && strspn(text, "01234567") == 4 &&
	    text[0] == '0' && (text[1] == '6' || text[1] == '7')) {
		s->trace_file_mode = (uint32_t)strtoul(text, NULL, 8);
		return 0;
	}
	log_escape(shown, sizeof(shown), text, strlen(text));
	snprintf(err, err_size, "\"%s\" is no mode for trace files: write four "
	    "octal digits that let the owner read and write, as in 0600 or "
	    "0644", shown);
	return -1;
}

int
settings_set_tls_dir(struct settings *s, const char *path, char *err,
    size_t err_size)
{
	return set_name(&s->tls.dir, path, "the directory of certificates", err,
	    err_size);
}

int
settings_set_io_threads(struct settings *s, uint64_t n, char *err,
    size_t err_size)
{
	if (n > SETTINGS_IO_THREADS_MAX) {
		snprintf(err, err_size, "%llu threads for connections are more "
		    "than the %u there may be", (unsigned long long)n,
		    SETTINGS_IO_THREADS_MAX);
		return -1;
	}
	s->io_threads = (uint32_t)n;
	return 0;
}

int
settings_set_user(struct settings *s, const char *name, char *err,
    size_t err_size)
{
	return set_name(&s->user, name, "the user to become", err, err_size);
}

int
settings_set_socket_permissions(struct settings *s, const char *text,
    char *err, size_t err_size)
{
	struct socket_permissions p;

	if (socket_permissions_parse(&p, text, err, err_size) != 0)
		return -1;
	return set_name(&s->socket_permissions, text, "a permission", err,
	    err_size);
}

int
socket_permissions_parse(struct socket_permissions *p, const char *text,
    char *err, size_t err_size)
{
	char shown[128];
	struct socket_permissions out;
	const char *rest = text;

	if (socket_owner_take(&rest, out.producer_group, &out.producer_mode) &&
	    socket_owner_take(&rest, out.consumer_group, &out.consumer_mode) &&
	    *rest == '\0' && rest[-1] != ':') {
		*p = out;
		return 0;
	}
	log_escape(shown, sizeof(shown), text, strlen(text));
	snprintf(err, err_size, "\"%s\" are no socket permissions: write "
	    "prod_group:prod_mode:cons_group:cons_mode with modes of four "
	    "octal digits, as in traced:0660:traced:0660", shown);
	return -1;
}
