#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/fleet/bench_fleet.h"
#include "tests/bench/fleet/crowd.h"
#include "tests/bench/tls/storm.h"
#include "tests/load/load_ca.h"
#include "tests/load/load_conn.h"
#include "tests/load/load_tls.h"
#include "transport/tls/tls.h"

/* As many shake hands at a time as limits.max_handshakes_per_peer has. */
#define STORM 2000u
/* The collector gives memory back in its first calm second. */
#define CALM_SECONDS 3

void
bench_tls(struct bench *b)
{
	char folder[] = "/tmp/trib-bench-ca-XXXXXX", dir[96];
	struct tls_context *devices;
	struct storm *storms[64];
	double took, used;
	uint64_t before;
	size_t n = 0, i;

	if (mkdtemp(folder) == NULL)
		load_die("no folder for certificates");
	load_ca_make(folder);
	snprintf(dir, sizeof(dir), "%s/%s", folder, LOAD_CA_DEVICE);
	devices = load_tls_context(dir, TLS_CLIENT);
	load_tls_use(devices);
	snprintf(dir, sizeof(dir), "%s/%s", folder, LOAD_CA_COLLECTOR);
	bench_start(b, 0, NULL, dir);
	before = process_rss(b->d.pid);
	used = bench_cpu(b);
	while (n * STORM < b->n && n < sizeof(storms) / sizeof(storms[0])) {
		storms[n] = storm_run(b->d.producers_tls, STORM,
		    STORM_INITIALISED, &took);
		storm_register(storms[n++]);
	}
	used = bench_cpu(b) - used;
	sleep(CALM_SECONDS);
	took = bench_bytes_each(b, before, n * STORM);
	printf("%zu producers connect over TLS and register\n", n * STORM);
	printf("  memory         %8.0f bytes resident each; aim <= 32768: "
	    "%s\n", took, bench_verdict(took <= 32768));
	printf("  processor      %8.2f s of the daemon, %.0f us each\n", used,
	    used / (double)(n * STORM) * 1e6);
	for (i = 0; i < n; i++)
		storm_free(storms[i]);
	bench_stop(b);
	tls_context_free(devices);
	load_ca_remove(folder);
	rmdir(folder);
	fflush(stdout);
}

void
bench_limit(struct bench *b)
{
	char config[] = "/tmp/trib-bench-conf-XXXXXX", text[96];
	const struct crowd_counts *c;
	size_t limit = b->n / 2, in, refused, again;
	int fd = mkstemp(config), len;

	len = snprintf(text, sizeof(text), "limits { max_producers: %zu }\n",
	    limit);
	if (fd < 0 || write(fd, text, (size_t)len) != len)
		load_die("no settings file");
	close(fd);
	bench_start(b, b->n + 1, config, NULL);
	c = crowd_counts(b->crowd);
	crowd_connect(b->crowd, b->n, AT_ONCE);
	in = c->registered;
	refused = c->refused;
	/* One leaves, and another finds room. */
	crowd_leave(b->crowd, 0);
	usleep(100000);
	crowd_connect(b->crowd, b->n + 1, AT_ONCE);
	again = c->registered - in;
	printf("%zu producers where limits.max_producers is %zu\n", b->n,
	    limit);
	printf("  served         %8zu, %zu refused; after one left: %zu more; "
	    "aim %zu, %zu, 1: %s\n", in, refused, again, limit, b->n - limit,
	    bench_verdict(in == limit && refused == b->n - limit &&
	    again == 1));
	bench_stop(b);
	unlink(config);
	fflush(stdout);
}
