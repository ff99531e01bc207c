#include "client/record_options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/config_from_names.h"
#include "transport/dial_flags.h"
#include "transport/size_duration.h"
#include "transport/unknown_flag.h"

enum long_only {
	OPT_TXT = 1000,
	OPT_ALL_MACHINES,
	OPT_MACHINE,
	OPT_NO_CLOBBER,
	OPT_NOTIFY_FD,
	OPT_CONNECT,
	OPT_QUIET,
};

static const char short_options[] = ":hc:o:dDt:b:s:q";

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "config", required_argument, NULL, 'c' },
	{ "txt", no_argument, NULL, OPT_TXT },
	{ "out", required_argument, NULL, 'o' },
	{ "no-clobber", no_argument, NULL, OPT_NO_CLOBBER },
	{ "time", required_argument, NULL, 't' },
	{ "buffer", required_argument, NULL, 'b' },
	{ "size", required_argument, NULL, 's' },
	{ "all-machines", no_argument, NULL, OPT_ALL_MACHINES },
	{ "machine", required_argument, NULL, OPT_MACHINE },
	{ "background", no_argument, NULL, 'd' },
	{ "background-wait", no_argument, NULL, 'D' },
	{ "notify-fd", required_argument, NULL, OPT_NOTIFY_FD },
	{ "connect", required_argument, NULL, OPT_CONNECT },
	DIAL_FLAGS_LONG,
	{ "quiet", no_argument, NULL, 'q' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
    "Usage: tributary record -o FILE -c CONFIG\n"
    "       tributary record -o FILE [-t TIME] [-b SIZE] [-s SIZE] NAME...\n"
    "\n"
    "Records a trace from the producers of a running tributaryd (or traced).\n"
    "Ctrl-C ends the recording and keeps the trace.\n"
    "\n"
    "What to record:\n"
    "  -c, --config FILE    a trace config, as protobuf text or binary; - reads\n"
    "                       standard input\n"
    "      --txt            the config is text (it is told apart without, too)\n"
    "  NAME...              instead of a config: data sources (linux.sys_stats,\n"
    "                       linux.process_stats, track_event) and events of the\n"
    "                       kernel (sched/sched_switch)\n"
    "  -t, --time TIME      with names: how long; 500ms, 10s, 5m, 1h (10s);\n"
    "                       0 records until it is stopped\n"
    "  -b, --buffer SIZE    with names: the ring buffer; 64kb, 32mb, 1gb (32mb)\n"
    "  -s, --size SIZE      with names: write into the file all the time, and\n"
    "                       stop at this size\n"
    "      --machine NAME   from this machine, not the collector's own; may be\n"
    "                       repeated, and be a pattern (\"robot-*\"); \"host\" is the\n"
    "                       collector's own (see tributary machines)\n"
    "      --all-machines   from every machine that is connected to the\n"
    "                       collector, also those that come later\n"
    "\n"
    "Where to:\n"
    "  -o, --out FILE       the trace; - writes to standard output\n"
    "      --no-clobber     leave alone a file that exists\n"
    "\n"
    "How:\n"
    "  -d, --background     go on in the background; prints the process id, to\n"
    "                       be stopped with kill\n"
    "  -D, --background-wait  the same, once all data sources have started\n"
    "      --notify-fd N    when all data sources have started, write a byte to\n"
    "                       descriptor N and close it: 0, or not 0 on failure\n"
    "  -q, --quiet          print warnings and errors only\n"
    "  -h, --help           print this\n"
    "\n"
    "Where the collector is:\n"
    "      --connect ADDR   its consumer socket; default:\n"
    "                       $PERFETTO_CONSUMER_SOCK_NAME, else\n"
    "                       /run/perfetto/traced-consumer.sock, else\n"
    "                       /tmp/perfetto-consumer\n"
    "            /path, @abstract       on this machine\n"
    "            tls://host:port        another one, by certificates (see\n"
    "                                   tributary cert --help)\n"
    "            ssh://[user@]host[:port][/socket | /host:port]\n"
    "                                   through ssh, to a socket or port as seen\n"
    "                                   there; without one, by tributary connect\n"
    "            host:port, [v6]:port, vsock://cid:port\n"
    "                                   neither encrypted nor authenticated\n"
    "      --tls-dir DIR    where ca.pem, cert.pem and key.pem are; default:\n"
    "                       $TRIBUTARY_TLS_DIR, else ~/.config/tributary/tls,\n"
    "                       else /etc/tributary/tls\n"
    "      --tls-name NAME  the name in the collector's certificate, where it is\n"
    "                       not that of the address\n"
    "      --allow-tls-1.2  take TLS 1.2, too, not 1.3 alone\n"
    "      --ssh-command CMD  what runs on the far side of ssh://host\n"
    "\n"
    "Exit status: 0 when the whole trace is in the file, 1 when it is not, 2\n"
    "when -D waited 30 seconds in vain for data sources to start.\n";

const char *
record_options_help(void)
{
	return help;
}

static int
parse_fd(const char *text, int *fd, char *err, size_t err_size)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || v < 0 || v > INT_MAX ||
	    fcntl((int)v, F_GETFD) < 0) {
		snprintf(err, err_size, "--notify-fd %.40s is not the number of "
		    "an open descriptor", text);
		return -1;
	}
	*fd = (int)v;
	return 0;
}

static int
add_machine(struct record_machines *m, const char *name, char *err,
    size_t err_size)
{
	if (name[0] == '\0') {
		snprintf(err, err_size, "the name of a machine (--machine) is "
		    "empty");
		return -1;
	}
	if (m->n_names == RECORD_MACHINES_MAX) {
		snprintf(err, err_size, "--machine is given more than %u times; "
		    "a pattern (\"robot-*\") stands for many",
		    RECORD_MACHINES_MAX);
		return -1;
	}
	m->names[m->n_names++] = name;
	return 0;
}

/* One flag that takes a value; 0, or -1 and a sentence. */
static int
value_flag(struct record_options *o, int flag, const char *value, char *err,
    size_t err_size)
{
	switch (flag) {
	case 'c':
		o->config = value;
		return 0;
	case 'o':
		o->out = value;
		return 0;
	case OPT_CONNECT:
		o->connect = value;
		return 0;
	case OPT_MACHINE:
		return add_machine(&o->machines, value, err, err_size);
	case 't':
		return size_duration_parse_ms(value, &o->duration_ms, err,
		    err_size);
	case 'b':
		return size_duration_parse_bytes(value, &o->buffer_bytes, err,
		    err_size);
	case 's':
		return size_duration_parse_bytes(value, &o->max_file_bytes,
		    err, err_size);
	default:
		return parse_fd(value, &o->notify_fd, err, err_size);
	}
}

/* What can be said without looking at the config. */
static int
check(const struct record_options *o, bool light, char *err, size_t err_size)
{
	const char *wrong = NULL;

	if (o->config != NULL && (light || o->n_names > 0))
		wrong = "a config (-c) says itself what, how long and how "
			"much: give either it or names with -t, -b and -s";
	else if (o->config == NULL && o->n_names == 0)
		wrong = "say what to record: a config (-c FILE), or names such "
			"as linux.sys_stats linux.process_stats track_event";
	else if (o->background && o->out != NULL && strcmp(o->out, "-") == 0)
		wrong = "-d and -D print a process id to standard output, "
			"which is where -o - puts the trace: choose one";
	else if (o->machines.all && o->machines.n_names > 0)
		wrong = "--all-machines records them all: leave out --machine";
	else if (o->out != NULL && o->out[0] == '\0')
		wrong = "the name of the output file (-o) is empty";
	else if (o->out != NULL && strcmp(o->out, "-") == 0 &&
	    isatty(STDOUT_FILENO))
		wrong = "a trace is binary and standard output is a terminal: "
			"name a file (-o FILE) or redirect";
	if (wrong == NULL)
		return 0;
	snprintf(err, err_size, "%s", wrong);
	return -1;
}

enum record_options_verdict
record_options_parse(struct record_options *o, int argc, char **argv,
    char *err, size_t err_size)
{
	struct record_options parsed = {
		.duration_ms = CONFIG_FROM_NAMES_DURATION_MS,
		.buffer_bytes = CONFIG_FROM_NAMES_BUFFER_BYTES,
		.notify_fd = -1,
		.how.service = "consumer",
	};
	bool light = false;
	int flag;

	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while ((flag = getopt_long(argc, argv, short_options, long_options,
	    NULL)) != -1) {
		switch (flag) {
		case 'h':
			return RECORD_OPTIONS_HELP;
		case 'D':
			parsed.background_wait = true;
			parsed.background = true;
			break;
		case 'd':
			parsed.background = true;
			break;
		case 'q':
			parsed.quiet = true;
			break;
		case OPT_ALL_MACHINES:
			parsed.machines.all = true;
			break;
		case OPT_TXT: /* text is told apart by itself */
			break;
		case OPT_NO_CLOBBER:
			parsed.no_clobber = true;
			break;
		case ':':
			snprintf(err, err_size, "%s wants a value",
			    argv[optind - 1]);
			return RECORD_OPTIONS_BAD;
		case '?':
			if (optopt > 0 && optopt < 128)
				snprintf(err, err_size, "there is no flag -%c; "
				    "see tributary record --help", optopt);
			else
				unknown_flag(argv[optind - 1], long_options,
				    "see tributary record --help", err, err_size);
			return RECORD_OPTIONS_BAD;
		default:
			if (dial_flags_take(&parsed.how, flag, optarg))
				break;
			light |= flag == 't' || flag == 'b' || flag == 's';
			if (value_flag(&parsed, flag, optarg, err,
			    err_size) < 0)
				return RECORD_OPTIONS_BAD;
			break;
		}
	}
	parsed.names = (const char *const *)argv + optind;
	parsed.n_names = (size_t)(argc - optind);
	if (check(&parsed, light, err, err_size) < 0)
		return RECORD_OPTIONS_BAD;
	*o = parsed;
	return RECORD_OPTIONS_RUN;
}
