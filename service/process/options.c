#include "service/process/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/front/activation.h"
#include "service/recordings/recordings.h"
#include "service/settings/settings.h"
#include "transport/base/flags.h"
#include "transport/base/log.h"

static const char help_text[] =
"Usage: tributaryd [FLAG]...\n"
"\n"
"Collects traces: stands where Perfetto's traced stands, with the same sockets\n"
"and the same protocol.  Needs no flag.\n"
"\n"
"Sockets (ADDR is /path, @abstract, tls://host:port, host:port, [v6]:port or\n"
"vsock://cid:port)\n"
"  --producer-socket ADDR    listen for producers there; may be given again.\n"
"                            Default: $PERFETTO_PRODUCER_SOCK_NAME (a list with\n"
"                            commas), else /run/perfetto/traced-producer.sock\n"
"                            where that folder can be entered, else\n"
"                            /tmp/perfetto-producer\n"
"  --consumer-socket ADDR    listen for consumers there; may be given again.\n"
"                            Default: $PERFETTO_CONSUMER_SOCK_NAME, else\n"
"                            /run/perfetto/traced-consumer.sock, else\n"
"                            /tmp/perfetto-consumer.  A consumer sees the data\n"
"                            of every producer\n"
"  --tls-dir DIR             certificates for tls:// sockets: ca.pem, cert.pem,\n"
"                            key.pem and, if there is one, crl.pem, as\n"
"                            `tributary cert init DIR` makes them\n"
"  --allow-remote ADDR       permit ADDR, named as above, though other machines\n"
"                            can reach it.  Nothing there is encrypted, and\n"
"                            peers are not authenticated.  Default: such an\n"
"                            address is refused; tls:// needs no permission\n"
"  --allow-plain-consumer ADDR\n"
"                            permit consumers at host:port or vsock://, named as\n"
"                            above, though peers are not authenticated: every\n"
"                            user of this machine (with --allow-remote, every\n"
"                            machine in reach) reads every trace.  Default:\n"
"                            refused\n"
"  --set-socket-permissions PGROUP:PMODE:CGROUP:CMODE\n"
"                            group and mode of the UNIX sockets for producers and\n"
"                            for consumers, as in traced:0660:traced:0660.\n"
"                            Default: as the umask leaves them\n"
"  --enable-relay-endpoint   accept relays on every producer socket\n"
"  --enable-relay-endpoint-on ADDR\n"
"                            accept relays (and their producers) on ADDR only,\n"
"                            a producer socket or another; may be given again.\n"
"                            Default: relays are not accepted\n"
"\n"
"Traces\n"
"  --trace-dir DIR           the only folder where a config's output_path may\n"
"                            create files.  Default: none, output_path is refused\n"
"  --no-lossless             when a disk cannot keep up, overwrite the oldest\n"
"                            data and count it.  Default: producers are held\n"
"                            back, nothing is lost\n"
"\n"
"Running\n"
"  --config FILE             read settings (protobuf text, message Settings);\n"
"                            variables and flags override them\n"
"  --check-config            only check the settings: print OK, or the fault\n"
"                            and exit with status 1\n"
"  --log-level LEVEL         error, warn, info or debug.  Default: info\n"
"  --user NAME               become this user once the sockets are open; for a\n"
"                            daemon that root starts.  Default: stay\n"
"  --seccomp                 refuse every system call that a collector does not\n"
"                            need, and new privileges.  Default: off\n"
"  --io-threads N            carry TCP and TLS connections (TLS, frames and\n"
"                            decompression) on N threads of their own.\n"
"                            Default: 0, one thread does it all\n"
"  --background              print the daemon's process id and return as soon as\n"
"                            its sockets are open\n"
"  --version                 print the version\n"
"  --help                    print this\n"
"\n"
"Environment\n"
"  PERFETTO_PRODUCER_SOCK_NAME, PERFETTO_CONSUMER_SOCK_NAME\n"
"                            sockets, see above\n"
"  PERFETTO_MACHINE_NAME     name of this machine in traces.  Default: uname -s\n"
"  TRACED_NOTIFY_FD          descriptor that gets \"1\" once the sockets are open\n"
"  NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS\n"
"                            spoken with systemd: readiness, watchdog, sockets\n"
"                            named producer, consumer or relay, with -tls behind\n"
"                            it for TLS\n"
"\n"
"SIGTERM and SIGINT end it: running sessions are stopped and their files\n"
"completed.  A second signal ends it at once.  SIGHUP reads certificates, key\n"
"and revocation list again, and the recordings of the settings; connections and\n"
"recordings that stay the same go on.  SIGUSR2 starts the installed program in\n"
"this one's place, if that accepts the settings; its sockets stay open.\n"
"\n"
"Exit status: 0 ended as asked, 1 could not start, 2 wrong usage.\n";

static int
add_socket(void *options, const struct flag *flag, const char *address,
    char *err, size_t err_size)
{
	struct options *o = options;

	if (o->n_sockets == OPTIONS_SOCKETS_MAX) {
		snprintf(err, err_size, "more than %u flags name a socket",
		    OPTIONS_SOCKETS_MAX);
		return -1;
	}
	o->sockets[o->n_sockets].what = (enum options_socket)flag->id;
	o->sockets[o->n_sockets++].address = address;
	return 0;
}

#define AT(member)   .at = offsetof(struct options, member)
#define SOCKET(what) FLAG_VALUE, .take = add_socket, .id = what

static const struct flag table[] = {
	{ "help", FLAG_BOOL, AT(help) },
	{ "version", FLAG_BOOL, AT(version) },
	{ "background", FLAG_BOOL, AT(background) },
	{ "set-socket-permissions", FLAG_TEXT, AT(socket_permissions) },
	{ "enable-relay-endpoint", FLAG_BOOL, AT(enable_relay_endpoint) },
	{ "enable-relay-endpoint-on", SOCKET(OPTIONS_RELAY_ON) },
	{ "producer-socket", SOCKET(OPTIONS_PRODUCER) },
	{ "consumer-socket", SOCKET(OPTIONS_CONSUMER) },
	{ "allow-remote", SOCKET(OPTIONS_ALLOW_REMOTE) },
	{ "allow-plain-consumer", SOCKET(OPTIONS_ALLOW_PLAIN_CONSUMER) },
	{ "tls-dir", FLAG_TEXT, AT(tls_dir) },
	{ "user", FLAG_TEXT, AT(user) },
	{ "seccomp", FLAG_BOOL, AT(seccomp) },
	{ "io-threads", FLAG_TEXT, AT(io_threads) },
	{ "trace-dir", FLAG_TEXT, AT(trace_dir) },
	{ "no-lossless", FLAG_BOOL, AT(no_lossless) },
	{ "config", FLAG_TEXT, AT(config) },
	{ "check-config", FLAG_BOOL, AT(check_config) },
	{ "log-level", FLAG_TEXT, AT(log_level) },
	{ .name = NULL },
};

const struct flags options_flags = {
	.table = table,
	.speaker = "tributaryd",
	.help_is_at = "--help lists them",
	.help = help_text,
	.version = "tributaryd " TRIBUTARY_VERSION,
	.bad_status = 2,
	.flags_first = true,
};

enum flags_verdict
options_parse(struct options *o, int argc, char **argv, char *err,
    size_t err_size)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	char shown[128];

	memset(o, 0, sizeof(*o));
	if (flags_parse(&options_flags, o, &words, err, err_size) != FLAGS_RUN)
		return FLAGS_BAD;
	if (words.argc == 0)
		return o->help ? FLAGS_HELP : o->version ? FLAGS_VERSION :
		    FLAGS_RUN;
	log_escape(shown, sizeof(shown), words.argv[0], strlen(words.argv[0]));
	snprintf(err, err_size, "there is nothing to do with \"%s\": "
	    "tributaryd takes flags only", shown);
	return FLAGS_BAD;
}

/* The sockets of one kind replace those of the file and the environment. */
static int
apply_sockets(const struct options *o, enum options_socket what,
    enum listen_port port, struct settings *s, char *err, size_t err_size)
{
	bool first = true;
	size_t i;

	for (i = 0; i < o->n_sockets; i++) {
		if (o->sockets[i].what != what)
			continue;
		if (first)
			settings_drop_listeners(s, port);
		first = false;
		if (settings_listen(s, port, o->sockets[i].address, false, err,
			err_size) != 0)
			return -1;
	}
	return 0;
}

/* Flags that permit more at an address that is named elsewhere. */
static int
apply_permits(const struct options *o, struct settings *s, char *err,
    size_t err_size)
{
	const char *address;
	size_t i;

	for (i = 0; i < o->n_sockets; i++) {
		address = o->sockets[i].address;
		if (o->sockets[i].what == OPTIONS_ALLOW_REMOTE &&
		    !settings_allow_remote(s, address)) {
			snprintf(err, err_size, "--allow-remote %s permits "
			    "nothing: no socket is named exactly so", address);
			return -1;
		}
		if (o->sockets[i].what == OPTIONS_ALLOW_PLAIN_CONSUMER &&
		    !settings_allow_plain_consumer(s, address)) {
			snprintf(err, err_size, "--allow-plain-consumer %s "
			    "permits nothing: no consumer socket is named "
			    "exactly so", address);
			return -1;
		}
	}
	return 0;
}

static int
apply_io_threads(const char *text, struct settings *s, char *err,
    size_t err_size)
{
	char why[256], *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
		snprintf(err, err_size, "--io-threads wants a number");
		return -1;
	}
	if (settings_set_io_threads(s, n, why, sizeof(why)) != 0) {
		snprintf(err, err_size, "--io-threads: %s", why);
		return -1;
	}
	return 0;
}

static int
apply_flags(const struct options *o, struct settings *s, char *err,
    size_t err_size)
{
	if (apply_sockets(o, OPTIONS_PRODUCER, LISTEN_PRODUCER, s, err,
		err_size) != 0 ||
	    apply_sockets(o, OPTIONS_CONSUMER, LISTEN_CONSUMER, s, err,
		err_size) != 0 ||
	    apply_sockets(o, OPTIONS_RELAY_ON, LISTEN_RELAY, s, err,
		err_size) != 0)
		return -1;
	if (o->log_level != NULL &&
	    settings_set_log_level(s, o->log_level, err, err_size) != 0)
		return -1;
	if (o->trace_dir != NULL &&
	    settings_set_trace_dir(s, o->trace_dir, err, err_size) != 0)
		return -1;
	if (o->socket_permissions != NULL &&
	    settings_set_socket_permissions(s, o->socket_permissions, err,
		err_size) != 0)
		return -1;
	if (o->tls_dir != NULL &&
	    settings_set_tls_dir(s, o->tls_dir, err, err_size) != 0)
		return -1;
	if (o->user != NULL &&
	    settings_set_user(s, o->user, err, err_size) != 0)
		return -1;
	if (o->seccomp)
		s->seccomp = true;
	if (o->io_threads != NULL &&
	    apply_io_threads(o->io_threads, s, err, err_size) != 0)
		return -1;
	if (o->enable_relay_endpoint)
		s->enable_relay_endpoint = true;
	if (o->no_lossless)
		s->lossless = false;
	return 0;
}

static int
fill_defaults(const struct activation *a, struct settings *s, char *err,
    size_t err_size)
{
	if (!activation_has(a, LISTEN_PRODUCER) &&
	    settings_fill_listeners(s, LISTEN_PRODUCER, err, err_size) != 0)
		return -1;
	if (!activation_has(a, LISTEN_CONSUMER) &&
	    settings_fill_listeners(s, LISTEN_CONSUMER, err, err_size) != 0)
		return -1;
	return 0;
}

int
options_settings(const struct options *o, const struct activation *a,
    struct settings *s, char *err, size_t err_size)
{
	if (settings_init(s) != 0) {
		snprintf(err, err_size, "no memory");
		return -1;
	}
	if ((o->config == NULL ||
		settings_load(s, o->config, err, err_size) == 0) &&
	    settings_apply_environment(s, err, err_size) == 0 &&
	    apply_flags(o, s, err, err_size) == 0 &&
	    fill_defaults(a, s, err, err_size) == 0 &&
	    apply_permits(o, s, err, err_size) == 0 &&
	    settings_check(s, err, err_size) == 0 &&
	    recordings_check(s, err, err_size) == 0)
		return 0;
	settings_done(s);
	return -1;
}
