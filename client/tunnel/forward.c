/* `tributary forward`: its flags, and a loop around a forwarder. */
#include "client/tunnel/forward.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/clock/this_machine.h"
#include "transport/connect/dial.h"
#include "transport/connect/dial_flags.h"
#include "transport/loop/loop.h"
#include "transport/process/sd_notify.h"

#define ERROR_BYTES 1024
#define HOST_BYTES  256

enum { EXIT_OK = 0, EXIT_COULD_NOT = 1 };

static const char help[] =
    "Usage: tributary forward --to ADDR [--listen ADDR] [FLAG]...\n"
    "\n"
    "Opens a local socket and leads every connection to a collector elsewhere,\n"
    "over TLS or ssh: for producers and consumers that know neither.  Ends with\n"
    "SIGTERM or Ctrl-C.  Data on the way when a connection is cut is lost.\n"
    "\n"
    "  --to ADDR         the collector: tls://host:port, ssh://[user@]host[:port]\n"
    "                    [/path], or another address\n"
    "  --listen ADDR     the local socket: /path, @abstract, or host:port on the\n"
    "                    loopback interface.  Default: where producers look, that\n"
    "                    is $PERFETTO_PRODUCER_SOCK_NAME, else\n"
    "                    /run/perfetto/traced-producer.sock, else\n"
    "                    /tmp/perfetto-producer (with --consumers: likewise)\n"
    "  --consumers       for consumers instead of producers\n"
    "  --machine-name NAME  the name of this machine in traces, where the\n"
    "                    certificate has none.  Default:\n"
    "                    $PERFETTO_MACHINE_NAME, else its host name\n"
    "  --tls-dir DIR     ca.pem, cert.pem and key.pem.  Default:\n"
    "                    $TRIBUTARY_TLS_DIR, ~/.config/tributary/tls,\n"
    "                    /etc/tributary/tls\n"
    "  --tls-name NAME   the name in the collector's certificate, where it is not\n"
    "                    the one in ADDR\n"
    "  --sni-machine     put the machine's name and a dot in front of that name,\n"
    "                    for a proxy that tells machines apart\n"
    "  --allow-tls-1.2   for a collector that knows no TLS 1.3\n"
    "  --ssh-command CMD  with ssh://host, no path: the command there.  Default:\n"
    "                    tributary connect\n"
    "  --log-level LEVEL  error, warn, info or debug.  Default: info\n"
    "  -h, --help        print this\n"
    "\n"
    "Exit status: 0 ended as asked, 1 could not start, 2 wrong usage.\n";

struct forward_args {
	const char *to;
	const char *listen;
	const char *machine_name;
	bool consumers;
	enum log_level level;
	struct dial_options how;
};

static int
take_level(void *options, const struct flag *flag, const char *value, char *err,
    size_t err_size)
{
	struct forward_args *a = options;

	if (log_level_parse(value, &a->level) == 0)
		return 0;
	return FAILURE(err, err_size, "--log-level is error, warn, info or "
	    "debug");
}

#define AT(member) .at = offsetof(struct forward_args, member)

static const struct flag table[] = {
	{ "to", FLAG_TEXT, AT(to) },
	{ "listen", FLAG_TEXT, AT(listen) },
	{ "consumers", FLAG_BOOL, AT(consumers) },
	{ "machine-name", FLAG_TEXT, AT(machine_name) },
	DIAL_FLAGS(offsetof(struct forward_args, how)),
	{ "log-level", FLAG_VALUE, .take = take_level },
	{ "help", FLAG_HELP, .letter = 'h' },
	{ .name = NULL },
};

static const struct flags flags = {
	.table = table,
	.speaker = "tributary forward",
	.help = help,
	.no_such_flag = " is no flag; --help lists them",
	.no_value = " needs a value",
	.bad_status = 2,
};

static enum flags_verdict
parse(struct forward_args *a, int argc, char **argv, char *err, size_t err_size)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;

	memset(a, 0, sizeof(*a));
	a->level = LOG_LEVEL_INFO;
	verdict = flags_parse(&flags, a, &words, err, err_size);
	a->how.machine_name = a->machine_name;
	a->how.service = a->consumers ? "consumer" : "producer";
	if (verdict != FLAGS_RUN)
		return verdict;
	if (words.argc > 0)
		snprintf(err, err_size, "%s is one word too many; --help tells "
		    "the usage", words.argv[0]);
	else if (a->to == NULL)
		snprintf(err, err_size, "--to is missing: where does the "
		    "collector listen?");
	else
		return FLAGS_RUN;
	return FLAGS_BAD;
}

/* A variable may name several sockets for a listener: the first is ours. */
static int
default_listen(const struct forward_args *a, struct addr *out, char *err,
    size_t err_size)
{
	const char *list = a->consumers ? addr_default_consumer() :
					  addr_default_producer();
	char item[ADDR_TEXT_MAX];

	if (addr_list_next(&list, item, sizeof(item)) != 1)
		return FAILURE(err, err_size, "the default socket's name is "
		    "too long");
	return addr_parse(out, item, err, err_size);
}

static void
stop_cb(void *arg)
{
	loop_stop(arg);
}

static int
serve(const struct forward_args *a, const struct addr *listen,
    const struct addr *to)
{
	struct forward_options o = {
		.listen = listen,
		.to = to,
		.how = &a->how,
		.consumers = a->consumers,
		.machine_name = a->machine_name,
	};
	struct forwarder *f = NULL;
	char err[ERROR_BYTES], host[HOST_BYTES];
	struct loop *l;
	int rc = EXIT_COULD_NOT;

	this_machine_name(host, sizeof(host));
	if (o.machine_name == NULL)
		o.machine_name = getenv("PERFETTO_MACHINE_NAME");
	if (o.machine_name == NULL)
		o.machine_name = host;
	if ((l = loop_new()) == NULL) {
		log_error("out of memory");
		return rc;
	}
	if (loop_on_signal(l, SIGTERM, stop_cb, l) != 0 ||
	    loop_on_signal(l, SIGINT, stop_cb, l) != 0 ||
	    loop_on_signal(l, SIGHUP, stop_cb, l) != 0) {
		log_error("cannot watch for signals");
		goto out;
	}
	if ((f = forwarder_new(l, &o, err, sizeof(err))) == NULL) {
		log_error("%s", err);
		goto out;
	}
	log_info("forwarding %s from %s to %s", a->consumers ? "consumers" :
	    "producers", listen->text, to->text);
	(void)sd_notify_send("READY=1");
	loop_run(l);
	rc = EXIT_OK;
out:
	forwarder_free(f);
	loop_free(l);
	return rc;
}

static int
wrong(const char *flag, const char *why)
{
	plain_printf(stderr, "tributary forward: %s: %s\n", flag, why);
	return flags.bad_status;
}

int
forward_main(int argc, char **argv)
{
	struct forward_args a;
	struct addr listen, to;
	char err[ERROR_BYTES];
	int rc;

	rc = flags_answer(&flags, parse(&a, argc, argv, err, sizeof(err)), err);
	if (rc >= 0)
		return rc;
	log_init("tributary forward", a.level);
	if (addr_parse(&to, a.to, err, sizeof(err)) != 0 ||
	    dial_flags_check(&a.how, &to, err, sizeof(err)) != 0)
		return wrong("--to", err);
	if ((a.listen != NULL ?
		addr_parse(&listen, a.listen, err, sizeof(err)) :
		default_listen(&a, &listen, err, sizeof(err))) != 0)
		return wrong("--listen", err);
	return serve(&a, &listen, &to);
}
