#include "relay/daemon/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base/failure.h"
#include "transport/base/flags.h"
#include "transport/base/log.h"
#include "transport/base/size_duration.h"

static const char help_text[] =
"Usage: tributary-relay --to ADDR [FLAG]...\n"
"       tributary-relay --stdio [--config FILE] [--state-dir DIR]\n"
"       tributary-relay --status [--json] [--config FILE] [--state-dir DIR]\n"
"       tributary-relay --metrics [--config FILE] [--state-dir DIR]\n"
"\n"
"Takes the producers of this machine and carries them to a collector elsewhere,\n"
"over one connection that may break: unsent data is kept.  Stands where\n"
"Perfetto's traced_relay stands, and talks to Perfetto's traced as that\n"
"does.  Needs no privileges.\n"
"\n"
"The collector\n"
"  --to ADDR                 where it is: tls://host:port, ssh://[user@]host, a\n"
"                            /path, host:port or vsock://cid:port.  Default:\n"
"                            $PERFETTO_RELAY_SOCK_NAME.  Several, with commas or\n"
"                            as more flags: the machine's name chooses one, and\n"
"                            the next where that is gone\n"
"  --move-after TIME         with several: how long it has to be gone; up to twice\n"
"                            as long, by chance.  Default: 30s\n"
"  --tls-dir DIR             for tls://: ca.pem, cert.pem and key.pem.  Default:\n"
"                            $TRIBUTARY_TLS_DIR, else ~/.config/tributary/tls,\n"
"                            else /etc/tributary/tls\n"
"  --tls-name NAME           for tls://: the name in the collector's certificate.\n"
"                            Default: the host of ADDR\n"
"  --sni-machine             for tls://: put the machine's name and a dot in front\n"
"                            of that name, for a proxy that tells machines apart\n"
"  --allow-tls-1.2           for tls://: accept a collector that knows no 1.3\n"
"  --ssh-command COMMAND     for ssh://: the command there.  Default:\n"
"                            tributary connect relay\n"
"  --compression LEVEL       compress on the way (zstd): 1 (fast) to 19 (small),\n"
"                            0 for none.  Default: 0\n"
"  --dialled                 the collector connects to this machine, through ssh\n"
"                            (its setting `dial`): wait for it\n"
"  --stdio                   the command such a collector runs: carry standard\n"
"                            input and output to the relay of this machine, which\n"
"                            is started in the background where there is none\n"
"\n"
"This machine\n"
"  --producer-socket ADDR    where local producers connect; may be given again.\n"
"                            Default: $PERFETTO_PRODUCER_SOCK_NAME (a list with\n"
"                            commas), else /run/perfetto/traced-producer.sock\n"
"                            where that folder can be entered, else\n"
"                            /tmp/perfetto-producer\n"
"  --set-socket-permissions GROUP:MODE\n"
"                            of the producers' UNIX sockets, as in traced:0660.\n"
"                            Default: as the umask leaves them\n"
"  --machine-name NAME       the name of this machine in traces, unless its\n"
"                            certificate has one.  Default:\n"
"                            $PERFETTO_MACHINE_NAME, else the host name\n"
"\n"
"Unsent data\n"
"  --memory SIZE             of the data kept in memory.  Default: 8mb\n"
"  --spool-dir DIR           where to keep more data than that on disk.\n"
"                            Default: none, then the oldest is dropped, and\n"
"                            counted in the trace\n"
"  --spool-size SIZE         of the data kept on disk.  Default: 256mb\n"
"  --state-dir DIR           where to keep the state for the next start of\n"
"                            the relay, best in memory.  Default:\n"
"                            $RUNTIME_DIRECTORY, else /run/tributary-relay, else\n"
"                            tributary-relay-UID in $XDG_RUNTIME_DIR or /tmp\n"
"\n"
"Running\n"
"  --status                  show the link, the producers, the waiting data\n"
"                            and the losses of the relay of this machine\n"
"  --json                    with --status: for programs\n"
"  --metrics                 print the numbers of the relay of this machine as\n"
"                            Prometheus reads them (text format 0.0.4), for the\n"
"                            textfile collector of node_exporter\n"
"  --config FILE             read settings (protobuf text, message\n"
"                            RelaySettings); variables and flags override them\n"
"  --check-config            only check the settings: print OK, or the fault\n"
"                            and exit with status 1\n"
"  --log-level LEVEL         error, warn, info or debug.  Default: info\n"
"  --background              print the relay's process id and return as soon as\n"
"                            its sockets are open\n"
"  --version                 print the version\n"
"  --help                    print this\n"
"\n"
"Environment\n"
"  PERFETTO_RELAY_SOCK_NAME, PERFETTO_PRODUCER_SOCK_NAME, PERFETTO_MACHINE_NAME,\n"
"  TRIBUTARY_TLS_DIR, RUNTIME_DIRECTORY\n"
"                            see above\n"
"  TRACED_RELAY_NOTIFY_FD    descriptor that gets \"1\" once the sockets are open\n"
"  NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS\n"
"                            spoken with systemd: readiness, watchdog, sockets\n"
"                            for producers\n"
"\n"
"SIGTERM and SIGINT end it, after a few seconds at most in which it sends\n"
"data; the rest is sent by the next relay that finds --state-dir.  A second\n"
"signal ends it at once.\n"
"\n"
"Exit status: 0 ended as asked, 1 could not start (--status, --metrics: no\n"
"relay runs), 2 wrong usage.\n";

/* ---- words ---- */

static int
choose_command(void *options, const struct flag *flag, const char *value,
    char *err, size_t err_size)
{
	enum relay_command command = (enum relay_command)flag->id;
	struct relay_options *o = options;

	/* Help wins over all, whatever else was asked. */
	if (o->command == RELAY_HELP || o->command == RELAY_VERSION)
		return 0;
	if (o->command != RELAY_SERVE && o->command != command &&
	    command != RELAY_HELP && command != RELAY_VERSION)
		return FAILURE(err, err_size, "--check-config, --stdio, "
		    "--status and --metrics are different things to do: give "
		    "one of them");
	o->command = command;
	return 0;
}

static int
add_to(void *options, const struct flag *flag, const char *list, char *err,
    size_t err_size)
{
	struct relay_options *o = options;

	if (o->n_to == PLACEMENT_MAX)
		return FAILURE(err, err_size, "more than %u flags name a "
		    "collector", PLACEMENT_MAX);
	o->to[o->n_to++] = list;
	return 0;
}

static int
add_socket(void *options, const struct flag *flag, const char *address,
    char *err, size_t err_size)
{
	struct relay_options *o = options;

	if (o->n_producer_sockets == RELAY_SOCKETS_MAX)
		return FAILURE(err, err_size, "more than %u flags name a "
		    "socket", RELAY_SOCKETS_MAX);
	o->producer_sockets[o->n_producer_sockets++] = address;
	return 0;
}

#define AT(member)     .at = offsetof(struct relay_options, member)
#define COMMAND(which) FLAG_NOTE, .take = choose_command, .id = which

static const struct flag table[] = {
	{ "help", COMMAND(RELAY_HELP) },
	{ "version", COMMAND(RELAY_VERSION) },
	{ "to", FLAG_VALUE, .take = add_to },
	{ "move-after", FLAG_TEXT, AT(move_after) },
	{ "tls-dir", FLAG_TEXT, AT(tls_dir) },
	{ "tls-name", FLAG_TEXT, AT(tls_name) },
	{ "sni-machine", FLAG_BOOL, AT(sni_machine) },
	{ "allow-tls-1.2", FLAG_BOOL, AT(allow_tls12) },
	{ "ssh-command", FLAG_TEXT, AT(ssh_command) },
	{ "producer-socket", FLAG_VALUE, .take = add_socket },
	{ "set-socket-permissions", FLAG_TEXT, AT(socket_permissions) },
	{ "machine-name", FLAG_TEXT, AT(machine_name) },
	{ "state-dir", FLAG_TEXT, AT(state_dir) },
	{ "spool-dir", FLAG_TEXT, AT(spool_dir) },
	{ "spool-size", FLAG_TEXT, AT(spool_size) },
	{ "memory", FLAG_TEXT, AT(memory) },
	{ "compression", FLAG_TEXT, AT(compression) },
	{ "config", FLAG_TEXT, AT(config) },
	{ "check-config", COMMAND(RELAY_CHECK) },
	{ "log-level", FLAG_TEXT, AT(log_level) },
	{ "background", FLAG_BOOL, AT(background) },
	{ "dialled", FLAG_BOOL, AT(dialled) },
	{ "stdio", COMMAND(RELAY_STDIO) },
	{ "status", COMMAND(RELAY_STATUS) },
	{ "metrics", COMMAND(RELAY_METRICS) },
	{ "json", FLAG_BOOL, AT(json) },
	{ .name = NULL },
};

const struct flags relay_options_flags = {
	.table = table,
	.speaker = "tributary-relay",
	.help_is_at = "--help lists them",
	.help = help_text,
	.version = "tributary-relay " TRIBUTARY_VERSION,
	.bad_status = 2,
	.flags_first = true,
};

/* Refuses flags that the command has no use for. */
static int
check_words(const struct relay_options *o, char *err, size_t err_size)
{
	if (o->json && o->command != RELAY_STATUS &&
	    o->command != RELAY_HELP && o->command != RELAY_VERSION)
		return FAILURE(err, err_size, "--json is for --status");
	if (o->command == RELAY_STDIO && (o->n_to > 0 || o->background))
		return FAILURE(err, err_size, "--stdio carries a collector "
		    "that dials to the relay of this machine: it takes no %s",
		    o->n_to > 0 ? "--to" : "--background");
	return 0;
}

int
relay_options_parse(struct relay_options *o, int argc, char **argv, char *err,
    size_t err_size)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	char shown[128];

	memset(o, 0, sizeof(*o));
	if (flags_parse(&relay_options_flags, o, &words, err, err_size) !=
	    FLAGS_RUN)
		return -1;
	if (words.argc > 0) {
		log_escape(shown, sizeof(shown), words.argv[0],
		    strlen(words.argv[0]));
		return FAILURE(err, err_size, "there is nothing to do with "
		    "\"%s\": tributary-relay takes flags only (the collector's "
		    "address: --to)", shown);
	}
	return check_words(o, err, err_size);
}

/* ---- settings ---- */

static int
set(char **slot, const char *value, const char *what, char *err,
    size_t err_size)
{
	return value == NULL ? 0 :
	    relay_settings_set_string(slot, value, what, err, err_size);
}

static int
set_size(uint64_t *slot, const char *value, const char *what, char *err,
    size_t err_size)
{
	char why[256];

	if (value == NULL || size_duration_parse_bytes(value, slot, why,
	    sizeof(why)) == 0)
		return 0;
	return FAILURE(err, err_size, "%s: %s", what, why);
}

static int
set_level(int *slot, const char *value, char *err, size_t err_size)
{
	char shown[64], *end;
	long level;

	if (value == NULL)
		return 0;
	level = strtol(value, &end, 10);
	if (*value >= '0' && *value <= '9' && *end == '\0' && level < 1000) {
		*slot = (int)level;
		return 0;
	}
	log_escape(shown, sizeof(shown), value, strlen(value));
	return FAILURE(err, err_size, "--compression takes a number from 0 to "
	    "19, not \"%s\"", shown);
}

static int
apply_sockets(const struct relay_options *o, struct relay_settings *s,
    char *err, size_t err_size)
{
	size_t i;

	if (o->n_producer_sockets > 0)
		relay_settings_drop_sockets(s);
	for (i = 0; i < o->n_producer_sockets; i++)
		if (relay_settings_add_producer_socket(s,
			o->producer_sockets[i], err, err_size) != 0)
			return -1;
	if (o->socket_permissions == NULL)
		return 0;
	return relay_settings_set_socket_permissions(s, o->socket_permissions,
	    err, err_size);
}

static int
apply_collectors(const struct relay_options *o, struct relay_settings *s,
    char *err, size_t err_size)
{
	char why[RELAY_SETTINGS_ERROR_SIZE];
	size_t i;

	/* Flags win, and so does the other way than what the file said. */
	if (o->n_to > 0 || o->dialled)
		relay_settings_drop_collectors(s);
	for (i = 0; i < o->n_to; i++)
		if (relay_settings_add_collectors(s, o->to[i], why,
			sizeof(why)) != 0)
			return FAILURE(err, err_size, "--to: %s", why);
	if (o->n_to > 0)
		s->dialled = false;
	if (o->dialled)
		s->dialled = true;
	if (o->move_after == NULL || size_duration_parse_long_ms(o->move_after,
		&s->move_after_ms, why, sizeof(why)) == 0)
		return 0;
	return FAILURE(err, err_size, "--move-after: %s", why);
}

static int
apply_flags(const struct relay_options *o, struct relay_settings *s, char *err,
    size_t err_size)
{
	if (apply_sockets(o, s, err, err_size) != 0 ||
	    apply_collectors(o, s, err, err_size) != 0 ||
	    set(&s->tls_dir, o->tls_dir, "--tls-dir", err, err_size) != 0 ||
	    set(&s->tls_name, o->tls_name, "--tls-name", err, err_size) != 0 ||
	    set(&s->ssh_command, o->ssh_command, "--ssh-command", err,
		err_size) != 0 ||
	    set(&s->machine_name, o->machine_name, "--machine-name", err,
		err_size) != 0 ||
	    set(&s->state_dir, o->state_dir, "--state-dir", err,
		err_size) != 0 ||
	    set(&s->spool_dir, o->spool_dir, "--spool-dir", err,
		err_size) != 0 ||
	    set_size(&s->spool_bytes, o->spool_size, "--spool-size", err,
		err_size) != 0 ||
	    set_size(&s->memory_bytes, o->memory, "--memory", err,
		err_size) != 0 ||
	    set_level(&s->compression_level, o->compression, err,
		err_size) != 0)
		return -1;
	if (o->spool_size != NULL && s->spool_dir == NULL)
		return FAILURE(err, err_size, "--spool-size: there is no spool "
		    "without a folder: give --spool-dir, too");
	if (o->sni_machine)
		s->sni_machine = true;
	if (o->allow_tls12)
		s->allow_tls12 = true;
	if (o->log_level == NULL)
		return 0;
	return relay_settings_set_log_level(s, o->log_level, err, err_size);
}

int
relay_options_settings(const struct relay_options *o, struct relay_settings *s,
    char *err, size_t err_size)
{
	bool whole = o->command == RELAY_SERVE || o->command == RELAY_CHECK;

	if (relay_settings_init(s) != 0)
		return FAILURE(err, err_size, "no memory");
	if ((o->config == NULL ||
		relay_settings_read(s, o->config, err, err_size) == 0) &&
	    relay_settings_from_env(s, err, err_size) == 0 &&
	    apply_flags(o, s, err, err_size) == 0 &&
	    (!whole || relay_settings_check(s, err, err_size) == 0))
		return 0;
	relay_settings_done(s);
	return -1;
}
