#include "client/probes/probes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/probes/ftrace_source.h"
#include "client/probes/probe_source.h"
#include "client/tunnel/producer_loop.h"
#include "transport/base/failure.h"
#include "transport/connect/dial_flags.h"
#include "transport/loop/loop.h"
#include "transport/process/background.h"
#include "transport/process/sd_notify.h"

/* Sizes as of traced_probes: dumps of many processes come in bursts. */
#define SHM_BYTES  (2u * 1024u * 1024u)
#define PAGE_BYTES (32u * 1024u)

/* Descriptors for all else than kept files, and the most we ask for. */
#define FDS_RESERVED 64
#define FDS_MAX      65536

/* Time for the last data to reach the service. */
#define STOP_MS 1000u

struct probes {
	struct loop *loop;
	struct producer_loop *producer;
	struct probe_env env;
	struct probe_sources sources;
	struct ftrace_source *ftrace; /* NULL: tracefs cannot be used */
	const char *address; /* for messages */
	bool ready; /* told so once */
	char complaint[512]; /* the last; "" since it was up */
};

/* ---- command line ---- */

static const char usage[] =
    "usage: tributary-probes [options]\n"
    "Offers linux.ftrace, linux.process_stats and linux.sys_stats to a tracing\n"
    "service.\n"
    "\n"
    "  --producer-socket ADDR  where the service listens for producers:\n"
    "                          /path, @name; tls://host:port (see tributary\n"
    "                          cert --help); ssh://[user@]host[:port][/socket |\n"
    "                          /host:port]; host:port, vsock://cid:port, which\n"
    "                          are neither encrypted nor authenticated\n"
    "                          (default: $PERFETTO_PRODUCER_SOCK_NAME, or the\n"
    "                          service's own default)\n"
    "  --tls-dir DIR           where ca.pem, cert.pem and key.pem are (default:\n"
    "                          $TRIBUTARY_TLS_DIR, ~/.config/tributary/tls or\n"
    "                          /etc/tributary/tls)\n"
    "  --tls-name NAME         the name in the service's certificate, where it\n"
    "                          is not the address's\n"
    "  --sni-machine           put the machine's name and a dot in front of that\n"
    "                          name, for a proxy that tells machines apart\n"
    "  --allow-tls-1.2         take TLS 1.2, too, not 1.3 alone\n"
    "  --ssh-command CMD       the command on the far side of ssh://host\n"
    "  --machine-name NAME     the name of this machine, over TCP, vsock\n"
    "                          and ssh (default: $PERFETTO_MACHINE_NAME, or\n"
    "                          the host's name); over TLS its certificate\n"
    "                          says so\n"
    "  --log-level LEVEL       error, warn, info or debug\n"
    "  --background            print the daemon's process id and return\n"
    "  --reset-ftrace          first set the kernel's tracer as after a boot: no\n"
    "                          events, no filters, small buffers\n"
    "  --cleanup-after-crash   the same, and exit; also puts back what a killed\n"
    "                          tributary-probes left (as each start does)\n"
    "  --version               print the version and exit\n"
    "  --help                  print this and exit\n";

/* A listener's variable may name several sockets: the first is ours. */
static int
parse_default_address(struct addr *a, char *err, size_t err_size)
{
	char text[ADDR_TEXT_MAX];
	const char *names = addr_default_producer();
	size_t n = strcspn(names, ",");

	if (n >= sizeof(text))
		return FAILURE(err, err_size, "the address is too long");
	memcpy(text, names, n);
	text[n] = '\0';
	return addr_parse(a, text, err, err_size);
}

static int
take_level(void *options, const struct flag *flag, const char *value, char *err,
    size_t err_size)
{
	struct probes_options *o = options;

	if (log_level_parse(value, &o->level) == 0)
		return 0;
	return FAILURE(err, err_size,
	    "--log-level: must be error, warn, info or debug");
}

#define AT(member) .at = offsetof(struct probes_options, member)

static const struct flag table[] = {
	{ "producer-socket", FLAG_TEXT, AT(socket) },
	DIAL_FLAGS(offsetof(struct probes_options, how)),
	{ "machine-name", FLAG_TEXT, AT(machine_name) },
	{ "log-level", FLAG_VALUE, .take = take_level },
	{ "background", FLAG_BOOL, AT(background) },
	{ "reset-ftrace", FLAG_BOOL, AT(reset_ftrace) },
	{ "cleanup-after-crash", FLAG_BOOL, AT(clean_up) },
	{ "version", .kind = FLAG_VERSION },
	{ "help", .kind = FLAG_HELP },
	{ .name = NULL },
};

const struct flags probes_flags = {
	.table = table,
	.speaker = "tributary-probes",
	.help = usage,
	.version = "tributary-probes " TRIBUTARY_VERSION,
	.no_such_flag = ": no such option (--help lists them)",
	.no_value = ": needs a value",
	.bad_status = 2,
};

enum flags_verdict
probes_parse(struct probes_options *o, int argc, char **argv, char *err,
    size_t err_size)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;
	char why[1024];

	memset(o, 0, sizeof(*o));
	o->level = LOG_LEVEL_INFO;
	o->machine_name = getenv("PERFETTO_MACHINE_NAME");
	o->how.service = "producer";
	verdict = flags_parse(&probes_flags, o, &words, err, err_size);
	if (verdict != FLAGS_RUN)
		return verdict;
	if (words.argc > 0) {
		snprintf(err, err_size, "%s: takes no arguments",
		    words.argv[0]);
		return FLAGS_BAD;
	}
	if ((o->socket != NULL ? addr_parse(&o->address, o->socket, why,
	    sizeof(why)) : parse_default_address(&o->address, why,
	    sizeof(why))) < 0) {
		snprintf(err, err_size, "%s: %s", o->socket != NULL ?
		    "--producer-socket" : "PERFETTO_PRODUCER_SOCK_NAME", why);
		return FLAGS_BAD;
	}
	o->how.machine_name = o->machine_name;
	return dial_flags_check(&o->how, &o->address, err, err_size) < 0 ?
	    FLAGS_BAD : FLAGS_RUN;
}

/* ---- running ---- */

/* Warns where the reason has changed; repeats go to the debug log. */
static void
complain(struct probes *p, const char *text)
{
	if (strncmp(p->complaint, text, sizeof(p->complaint) - 1) == 0) {
		log_debug("%s", text);
		return;
	}
	log_warn("%s; trying again", text);
	snprintf(p->complaint, sizeof(p->complaint), "%s", text);
}

static void
changed(void *arg, bool connected, const char *text)
{
	struct probes *p = arg;

	if (!connected) {
		complain(p, text);
		return;
	}
	log_info("connected to %s", p->address);
	p->complaint[0] = '\0';
	if (p->ready)
		return;
	p->ready = true;
	sd_notify_send("READY=1");
	notify_fd_from_env("TRACED_PROBES_NOTIFY_FD");
}

static void
on_signal(void *arg)
{
	struct probes *p = arg;

	sd_notify_send("STOPPING=1");
	loop_stop(p->loop);
}

/*
 * Counts the descriptors that files may keep open; some are left for all else.
 */
static int
fds_to_keep(void)
{
	struct rlimit r;
	rlim_t want;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return 0;
	want = r.rlim_max < FDS_MAX ? r.rlim_max : FDS_MAX;
	if (r.rlim_cur < want) {
		r.rlim_cur = want;
		if (setrlimit(RLIMIT_NOFILE, &r) < 0 &&
		    getrlimit(RLIMIT_NOFILE, &r) < 0)
			return 0;
	}
	if (r.rlim_cur > FDS_MAX)
		r.rlim_cur = FDS_MAX;
	return r.rlim_cur > FDS_RESERVED ? (int)r.rlim_cur - FDS_RESERVED : 0;
}

static void
env_init(struct probe_env *env)
{
	long hz = sysconf(_SC_CLK_TCK);

	env->proc = "/proc";
	env->sys = "/sys";
	env->fds_left = fds_to_keep();
	env->now_ns = loop_boottime_ns;
	env->ns_per_tick = 1000000000u / (uint64_t)(hz > 0 ? hz : 100);
}

static int
probes_init(struct probes *p, const struct probes_options *o)
{
	const struct producer_loop_setup setup = {
		.address = &o->address,
		.how = &o->how,
		.name = "tributary-probes",
		.memory_bytes = SHM_BYTES,
		.page_bytes = PAGE_BYTES,
		.machine_name = o->machine_name,
		.changed = changed,
		.arg = p,
	};

	p->address = o->address.text;
	env_init(&p->env);
	if ((p->loop = loop_new()) == NULL)
		return -1;
	if (loop_on_signal(p->loop, SIGTERM, on_signal, p) < 0 ||
	    loop_on_signal(p->loop, SIGINT, on_signal, p) < 0)
		return -1;
	p->sources = (struct probe_sources){ .loop = p->loop,
	    .env = &p->env };
	if (probe_sources_add(&p->sources) != 0)
		return -1;
	/* Without it the other data sources are offered. */
	p->ftrace = ftrace_source_add(&p->sources, o->reset_ftrace);
	p->producer = producer_loop_new(p->loop, &setup);
	return p->producer != NULL ? 0 : -1;
}

int
probes_run(const struct probes_options *o)
{
	struct probes p = { 0 };
	int status = 1, to_parent = -1;
	pid_t pid;

	log_init("tributary-probes", o->level);
	if (o->clean_up)
		return ftrace_source_clean_up();
	signal(SIGPIPE, SIG_IGN);
	if (o->background && (pid = background_fork(&to_parent)) != 0)
		return pid < 0 ? 1 : background_wait(pid, to_parent, stdout);
	if (probes_init(&p, o) < 0) {
		log_error("cannot start: %s", strerror(errno));
		goto out;
	}
	if (to_parent >= 0)
		background_detach(to_parent);
	loop_run(p.loop);
	status = 0;
out:
	producer_loop_free(p.producer, STOP_MS);
	ftrace_source_free(p.ftrace);
	if (p.loop != NULL)
		loop_free(p.loop);
	return status;
}
