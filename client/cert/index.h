/*
 * index: the list of certificates that a CA has issued, and its file format.
 *
 * The file is read by people and scripts, so its form is fixed:
 *
 *	# tributary certificates 1
 *	SERIAL NAME ROLE FROM UNTIL STATE REVOKED REASON
 *
 * one line a certificate, in the order of issue, its fields separated by one
 * tab each.  SERIAL is hexadecimal in capitals; ROLE collector, producer,
 * relay, consumer or admin; FROM, UNTIL and REVOKED are UTC,
 * 2026-11-21T07:30:00Z; STATE is valid, replaced (renewed, and good until it
 * expires) or revoked; REVOKED and REASON are "-" where it is not.  Lines that
 * begin with # are comments and are not kept.
 *
 * Pure: text in, text out.
 */
#ifndef CLIENT_CERT_INDEX_H
#define CLIENT_CERT_INDEX_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "client/cert/name.h"
#include "transport/base/compiler.h"

/* Longest serial number (20 bytes, RFC 5280) and its NUL. */
#define CERT_SERIAL_SIZE 41
#define CERT_INDEX_MAX_ENTRIES 65536u
#define CERT_INDEX_MAX_BYTES (16u << 20)

/* Reasons as in a CRL, with its reason codes as values. */
enum cert_reason {
	CERT_REASON_UNSPECIFIED = 0,
	CERT_REASON_KEY_COMPROMISE = 1,
	CERT_REASON_AFFILIATION_CHANGED = 3,
	CERT_REASON_SUPERSEDED = 4,
	CERT_REASON_CESSATION = 5,
};

enum cert_state { CERT_VALID, CERT_REPLACED, CERT_REVOKED };

struct cert_entry {
	char serial[CERT_SERIAL_SIZE];
	char name[CERT_NAME_MAX + 1];
	uint32_t role; /* of transport/socket/roles.h; 0: the collector's own */
	time_t from, until;
	enum cert_state state;
	time_t revoked; /* with CERT_REVOKED */
	enum cert_reason reason;
};

struct cert_index {
	struct cert_entry *entries; /* owned */
	size_t n;
	size_t room;
};

/* An index that is all zeros is empty and valid. */
void cert_index_done(struct cert_index *x);

/*
 * Reads text into an empty index.  -1 with a sentence that begins with
 * the line's number; x is then still to be cleared.
 */
int cert_index_parse(struct cert_index *x, const char *text, size_t len,
    char *err, size_t err_size) MUST_CHECK;
/* The whole text, for the caller to free; NULL: no memory. */
char *cert_index_text(const struct cert_index *x, size_t *len) MUST_CHECK;

/*
 * Appends a copy of e; pointers to entries become invalid.  -1: no memory, or
 * there are CERT_INDEX_MAX_ENTRIES already.
 */
int cert_index_add(struct cert_index *x, const struct cert_entry *e) MUST_CHECK;

/*
 * The newest certificate of that name in that state, other than the collector's
 * own; NULL: none.  Valid until cert_index_add(), as the next two.
 */
struct cert_entry *cert_index_find(const struct cert_index *x,
    const char *name, enum cert_state state);
/* The collector's newest certificate, valid or revoked; NULL: none. */
struct cert_entry *cert_index_collector(const struct cert_index *x);
/* Finds by serial number, in any case of letters, with or without colons. */
struct cert_entry *cert_index_by_serial(const struct cert_index *x,
    const char *serial);

/* "producer"; "collector" for 0. */
const char *cert_role_text(uint32_t role);
/* "valid", "replaced", "revoked" */
const char *cert_state_text(enum cert_state state);
/* "key-compromise" and so on; -1 when a text is none of them. */
const char *cert_reason_text(enum cert_reason reason);
int cert_reason_parse(const char *text, enum cert_reason *reason) MUST_CHECK;
/* "2026-11-21T07:30:00Z"; returns out. */
#define CERT_TIME_SIZE 24
const char *cert_time_text(time_t t, char out[CERT_TIME_SIZE]);

#endif /* CLIENT_CERT_INDEX_H */
