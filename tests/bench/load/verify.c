#include "tests/bench/load/verify.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/inspect/scan/trace_open.h"
#include "client/inspect/scan/trace_scan.h"
#include "client/inspect/scan/trace_window.h"
#include "client/trace/packet_expand.h"
#include "protos/json_out.h"
#include "tests/bench/load/account.h"
#include "tests/bench/load/load_ledger.h"

#define TRACES_MAX 4096

struct verify {
	struct account *account;
	struct packet_expand *expand;
	struct account_options options;
	bool cut; /* traces may end within a packet */
	const char *ledger_paths[ACCOUNT_LEDGERS_MAX];
	struct load_ledger *ledgers[ACCOUNT_LEDGERS_MAX];
	size_t n_ledgers;
	uint64_t bytes;
	uint64_t damaged;  /* places, compressed packets included */
	uint64_t cut_bytes;
	char err[512];
};

static void
inner_cb(void *arg, const uint8_t *data, size_t len)
{
	struct verify *v = arg;

	account_packet(v->account, data, len);
}

static bool
packet_cb(void *arg, const uint8_t *data, size_t len, uint64_t bytes,
    uint64_t offset)
{
	struct verify *v = arg;
	char err[128];

	switch (packet_expand_packet(v->expand, data, len, err, sizeof(err))) {
	case PACKET_EXPAND_PLAIN:
		account_packet(v->account, data, len);
		break;
	case PACKET_EXPAND_DONE:
		break;
	case PACKET_EXPAND_BAD:
		v->damaged++;
		break;
	}
	return true;
}

static int
read_trace(struct verify *v, const char *path)
{
	const struct trace_scan_ops ops = { .packet = packet_cb, .arg = v };
	struct trace_window w;
	struct trace_scan scan;
	uint64_t size;
	int fd, rc;

	fd = trace_open(path, &size, v->err, sizeof(v->err));
	if (fd < 0)
		return -1;
	trace_window_init_fd(&w, &fd);
	rc = trace_scan_run(&scan, &w, size, &ops, v->err, sizeof(v->err));
	trace_window_done(&w);
	if (fd != STDIN_FILENO)
		close(fd);
	if (rc != 0)
		return -1;
	v->bytes += scan.bytes;
	v->damaged += scan.n_damages + scan.malformed;
	v->cut_bytes += scan.tail_bytes;
	return 0;
}

static void
put_faults(struct json_out *j, const struct verify *v,
    const struct account_result *r)
{
	size_t i;

	json_uint(j, "untold", r->untold);
	json_uint(j, "doubled", r->doubled);
	json_uint(j, "disordered", r->disordered);
	json_uint(j, "altered", r->altered);
	json_uint(j, "never_written", r->never_written);
	json_uint(j, "strangers", r->strangers);
	json_uint(j, "mixed_up", r->mixed_up);
	json_uint(j, "damaged", v->damaged);
	json_uint(j, "cut_bytes", v->cut_bytes);
	json_array(j, "examples");
	for (i = 0; i < r->n_examples; i++)
		json_string(j, NULL, r->examples[i]);
	json_array_end(j);
}

static void
print(const struct verify *v, const struct account_result *r, bool good)
{
	struct json_out j = { .out = stdout };
	size_t i;

	json_object(&j, NULL);
	json_bool(&j, "accounted", good);
	json_uint(&j, "bytes", v->bytes);
	json_uint(&j, "packets", r->packets);
	json_uint(&j, "sequences", r->sequences);
	json_uint(&j, "sequences_seen", r->sequences_seen);
	json_uint(&j, "written", r->written);
	json_uint(&j, "present", r->present);
	json_uint(&j, "missing", r->missing);
	json_uint(&j, "missing_unsure", r->missing_unsure);
	json_uint(&j, "parts", r->parts);
	json_uint(&j, "parts_cut_short", r->parts_cut_short);
	json_uint(&j, "cut_short", r->cut_short);
	json_uint(&j, "told", r->told);
	json_object(&j, "causes");
	for (i = 0; i < r->n_causes; i++)
		json_uint(&j, r->causes[i].name, r->causes[i].packets);
	json_object_end(&j);
	put_faults(&j, v, r);
	json_object_end(&j);
	putchar('\n');
}

static int
parse(struct verify *v, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "ledger", required_argument, NULL, 'l' },
		{ "session", required_argument, NULL, 's' },
		{ "prefix", no_argument, NULL, 'p' },
		{ "cut", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 'l':
			if (v->n_ledgers == ACCOUNT_LEDGERS_MAX)
				return -1;
			v->ledger_paths[v->n_ledgers++] = optarg;
			break;
		case 's':
			v->options.has_session = true;
			v->options.session =
			    (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'p':
			v->options.prefix = true;
			break;
		case 'c':
			v->cut = true;
			break;
		default:
			return -1;
		}
	}
	return v->n_ledgers > 0 && optind < argc ? 0 : -1;
}

static int
open_all(struct verify *v)
{
	size_t i;

	v->account = account_new(&v->options);
	v->expand = packet_expand_new(inner_cb, v);
	if (v->account == NULL || v->expand == NULL) {
		snprintf(v->err, sizeof(v->err), "out of memory");
		return -1;
	}
	for (i = 0; i < v->n_ledgers; i++) {
		v->ledgers[i] = load_ledger_open(v->ledger_paths[i], v->err,
		    sizeof(v->err));
		if (v->ledgers[i] == NULL)
			return -1;
		if (account_add_ledger(v->account, v->ledgers[i]) != 0) {
			snprintf(v->err, sizeof(v->err), "out of memory");
			return -1;
		}
	}
	return 0;
}

int
verify_main(int argc, char **argv)
{
	struct verify v = { 0 };
	struct account_result result;
	bool good;
	int rc = 2;
	size_t i;

	if (parse(&v, argc, argv) != 0) {
		fputs("usage: tributary-load verify TRACE... --ledger FILE "
		    "[--ledger FILE]...\n"
		    "           [--session N] [--prefix] [--cut]\n"
		    "\n"
		    "Holds traces against ledgers.  Several traces are one "
		    "session's files, in order,\n"
		    "or segments of all sessions of a recording.\n"
		    "  --session N  of the session whose for_testing.seed was "
		    "N; else those of which\n"
		    "               the trace has a packet\n"
		    "  --prefix     sequences may lack their end (a clone, a "
		    "collector that was killed)\n"
		    "  --cut        the file may end within a packet\n"
		    "Exits with 0 where each packet is accounted for, 1 where "
		    "not, 2 where that\ncannot be said.\n", stderr);
		return 2;
	}
	if (open_all(&v) != 0)
		goto out;
	for (; optind < argc; optind++)
		if (read_trace(&v, argv[optind]) != 0)
			goto out;
	account_finish(v.account, &result);
	if (result.sequences == 0 && !v.options.has_session) {
		snprintf(v.err, sizeof(v.err), "no packet of a sequence of the "
		    "ledger is there: say --session N");
		goto out;
	}
	good = account_is_good(&result) && v.damaged == 0 &&
	    (v.cut || v.cut_bytes == 0);
	print(&v, &result, good);
	rc = good ? 0 : 1;

out:
	if (rc == 2)
		fprintf(stderr, "tributary-load verify: %s\n", v.err);
	account_free(v.account);
	packet_expand_free(v.expand);
	for (i = 0; i < v.n_ledgers; i++)
		load_ledger_free(v.ledgers[i]);
	return rc;
}

int
verify_ledger_main(int argc, char **argv)
{
	const struct load_entry *e;
	struct load_ledger *l;
	char err[512];
	uint64_t i;

	if (argc != 2) {
		fputs("usage: tributary-load ledger FILE\n", stderr);
		return 2;
	}
	if ((l = load_ledger_open(argv[1], err, sizeof(err))) == NULL) {
		fprintf(stderr, "tributary-load ledger: %s\n", err);
		return 2;
	}
	for (i = 0; i < load_ledger_count(l); i++) {
		e = load_ledger_at(l, load_ledger_first(l) + (uint32_t)i);
		if (e == NULL)
			break;
		printf("{\"key\":%" PRIu64 ",\"session\":%u,\"producer\":%u,"
		    "\"connection\":%u,\"written\":%" PRIu64 ",\"sure\":%"
		    PRIu64 ",\"bytes\":%" PRIu64 ",\"end\":\"%s\"}\n",
		    load_ledger_first(l) + i, e->session, e->producer,
		    e->connection, e->written, e->sure, e->bytes,
		    load_end_text(e->end));
	}
	load_ledger_free(l);
	return 0;
}
