/*
 * tls_internal: the insides of a connection, for the files that share it.
 * Private to tls_*.c and their tests.
 */
#ifndef TRANSPORT_TLS_TLS_INTERNAL_H
#define TRANSPORT_TLS_TLS_INTERNAL_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "transport/base/compiler.h"
#include "transport/tls/tls.h"

struct tls_setup;

/*
 * Bytes that one read of the socket may bring after the handshake, two records;
 * before, it is OpenSSL's own size (one).  The buffer exists only while it
 * holds bytes.  A larger one saves system calls but is slower: records are
 * decrypted in place, and the buffer has to stay in the processor's cache (64
 * KiB were 4 % slower than 33).
 */
#define TLS_READ_BUFFER_BYTES (2u * (16384u + 256u))

/* The first bytes of the peer: enough to see what it speaks. */
#define TLS_HEAD_BYTES 16

enum tls_state {
	TLS_SHAKING, /* the handshake is under way; neither input nor output */
	TLS_FAILED,  /* the handshake failed: end_errno */
	TLS_OPEN,
	TLS_ENDED,   /* no more input: end_errno, 0 for an orderly end */
};

struct tls_conn {
	struct tls_setup *setup; /* a reference */
	SSL *ssl;
	int fd;     /* borrowed */
	char *host; /* TLS_CLIENT; no dot at its end */
	char *peer_text;

	enum tls_state state;
	int end_errno;
	bool ktls_send;   /* the socket takes plain bytes */
	bool wants_write; /* tls_conn_wants_write() */
	bool broken;      /* no more output, and no goodbye, in any state */
	enum {
		INPUT_UNKNOWN,
		/* Inside receive: a read brought less than it had room for. */
		INPUT_DRAINED,
		/* The buffered bytes were looked at: not a whole record yet. */
		INPUT_STARVED,
	} input;
	/* Inside receive: bytes of the socket, and what was in them. */
	size_t fetched, yielded;
	size_t barren; /* bytes read since the last that yielded data */
	/*
	 * Bytes that OpenSSL has begun to send (encrypted, and perhaps sent in
	 * part): it wants the same bytes again in the next write; NULL: none.
	 */
	uint8_t *begun;
	size_t begun_len;
	/* Bytes that the caller will offer next, but that were sent already. */
	size_t ahead;
	/* The session that a client offered; only to be compared. */
	const void *offered;
	time_t valid_until; /* resumed: end of the verification's validity */

	struct tls_identity identity;
	char *error; /* NULL: "" */
	bool speechless; /* there was no memory for error */
	uint8_t head[TLS_HEAD_BYTES];
	size_t n_head;
};

/* Whether the handshake is done; stays true at the end of the input. */
static inline bool
tls_conn_is_open(const struct tls_conn *t)
{
	return t->state >= TLS_OPEN;
}

#endif /* TRANSPORT_TLS_TLS_INTERNAL_H */
