/*
 * fake_tls: transport/tls/tls.h with TLS off: bytes pass as they are, but what
 * a real one may demand is demanded: steps of a handshake, waiting for the
 * other direction, input that lies inside, an alert.  A program that links it
 * gets it instead of the real one.
 */
#ifndef TESTS_UNIT_TRANSPORT_TLS_FAKE_TLS_H
#define TESTS_UNIT_TRANSPORT_TLS_FAKE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What connections made from now on do.  Zeros: the least. */
struct fake_tls_plan {
	/* Steps that end "not yet"; bit i of shake_wants_write: wants what. */
	unsigned shake_steps;
	unsigned shake_wants_write;
	/*
	 * Steps that a byte from the peer is needed for: that is read, and the
	 * step repeated until it is there.
	 */
	unsigned shake_bytes;
	bool shake_fails;
	bool speaks_last; /* the peer has to begin */
	/* Every so many calls is "not now", for the other direction; 0: none. */
	unsigned receive_wants_write_every;
	unsigned send_wants_read_every;
	size_t receive_max; /* bytes a call; 0: as they fit */
	size_t send_max;
	/* After so many bytes of input, an alert comes; 0: never. */
	size_t alert_after;
};
extern struct fake_tls_plan fake_tls_plan;

/* Connections that live. */
extern int fake_tls_live;

#define FAKE_TLS_SHAKE_ERROR "the client's certificate has expired"
#define FAKE_TLS_ALERT       "the collector refuses the certificate: revoked"
#define FAKE_TLS_NAME        "device\n7"

#endif /* TESTS_UNIT_TRANSPORT_TLS_FAKE_TLS_H */
