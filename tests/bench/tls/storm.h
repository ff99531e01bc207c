/*
 * storm: many devices that connect at the same moment, from one thread.
 */
#ifndef TESTS_BENCH_TLS_STORM_H
#define TESTS_BENCH_TLS_STORM_H

#include <stddef.h>

struct storm;

/* When a device is in. */
enum storm_until {
	STORM_CONNECTED,   /* nothing but its half-sent greeting is there */
	STORM_SHAKEN,      /* its side of the handshake is done */
	STORM_GREETED,     /* a tls_sink said its byte */
	STORM_INITIALISED, /* a collector answered InitializeConnection */
};

/*
 * Connects n devices to a tls:// address with what load_tls_use() said.  They
 * stay connected.  seconds: from the first connect() until the last is in.
 */
struct storm *storm_run(const char *address, size_t n, enum storm_until until,
    double *seconds);
/* STORM_INITIALISED: each asks for commands and registers a data source. */
void storm_register(struct storm *s);
void storm_free(struct storm *s);

#endif /* TESTS_BENCH_TLS_STORM_H */
