/*
 * metrics: writes families of numbers as Prometheus reads them: text format
 * 0.0.4, and OpenMetrics 1.0.  Pure, but for the file that it prints to.
 *
 * Label values come from peers: they are escaped, cut to METRICS_LABEL_MAX
 * bytes, and no more than METRICS_SERIES_MAX of a family are printed, so that a
 * hostile peer cannot fill what stores them.
 */
#ifndef TRANSPORT_METRICS_METRICS_H
#define TRANSPORT_METRICS_METRICS_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct Tributary__ProcessMetrics;

#define METRICS_LABEL_MAX  64u
#define METRICS_SERIES_MAX 64u

enum metrics_form {
	METRICS_PROMETHEUS,
	METRICS_OPENMETRICS,
};
/* The value of Content-Type; static. */
const char *metrics_type(enum metrics_form form);

enum metrics_kind { METRICS_COUNTER, METRICS_GAUGE };

/* Digits of a value that stand behind the point, in the unit that is printed. */
enum metrics_scale { METRICS_WHOLE = 0, METRICS_MS = 3, METRICS_NS = 9 };

/*
 * A family of one value, or of one for each value of a label.  Strings are
 * static.  The place of its value in a message is for metrics_families().
 */
struct metrics_family {
	const char *name; /* a counter's without _total */
	const char *help;
	enum metrics_kind kind;
	enum metrics_scale scale;
	const char *label; /* NULL: one value */
	/* Offsets: of has_NAME, or with a label n_NAME; and of NAME. */
	size_t has;
	size_t at;
	bool is_signed; /* an int64_t */
};

/* 0; does not compile where the member has not 64 bits. */
#define METRICS_64(message, member)                                           \
	(0 * sizeof(char[sizeof(((message *)0)->member) == 8 ? 1 : -1]))
/* A family's last members: a number of 64 bits, or QueryMetricsReply.Counts. */
#define METRICS_ONE(message, member)                                          \
	NULL, offsetof(message, has_##member),                                \
	    offsetof(message, member) + METRICS_64(message, member), false
#define METRICS_ONE_SIGNED(message, member)                                   \
	NULL, offsetof(message, has_##member),                                \
	    offsetof(message, member) + METRICS_64(message, member), true
#define METRICS_EACH(message, member, its_label)                              \
	its_label, offsetof(message, n_##member), offsetof(message, member),  \
	    false

/* Destination of all that follows.  The file is borrowed. */
struct metrics_out {
	FILE *out;
	enum metrics_form form;
};

/* HELP and TYPE; prefix stands before the family's name. */
void metrics_head(const struct metrics_out *m, const char *prefix,
    const struct metrics_family *f);
/* One value of a family whose head was written; label NULL: it has none. */
void metrics_value(const struct metrics_out *m, const char *prefix,
    const struct metrics_family *f, const char *label, uint64_t v);
/* Head and value of a family without a label. */
void metrics_one(const struct metrics_out *m, const struct metrics_family *f,
    uint64_t v);
/*
 * Head, and a value for each of `labels` (to NULL): 1 for the one that is equal
 * to `now`, which may be NULL, else 0.
 */
void metrics_states(const struct metrics_out *m,
    const struct metrics_family *f, const char *const *labels, const char *now);
/* All families that have a value in the message, which METRICS_ONE names. */
void metrics_families(const struct metrics_out *m, const char *prefix,
    const struct metrics_family *f, size_t n, const ProtobufCMessage *message);

/* One row of a histogram; most_ns UINT64_MAX: any time. */
struct metrics_row {
	uint64_t most_ns;
	uint64_t count; /* of this row alone */
};
/* A histogram in seconds of rows with growing most_ns; n 0: nothing. */
void metrics_histogram(const struct metrics_out *m, const char *name,
    const char *help, const struct metrics_row *rows, size_t n,
    uint64_t sum_ns);

/* NAME_info with the version, which may be NULL. */
void metrics_build(const struct metrics_out *m, const char *name,
    const char *help, const char *version);
/* The families process_*, behind the prefix. */
void metrics_process(const struct metrics_out *m, const char *prefix,
    const struct Tributary__ProcessMetrics *p);
/* The end of a page. */
void metrics_end(const struct metrics_out *m);

/*
 * The name of an enum's value in small letters, without prefix: a label.  False:
 * the enum has no such value.
 */
bool metrics_enum_label(char out[METRICS_LABEL_MAX],
    const ProtobufCEnumDescriptor *d, int value, const char *prefix);

#endif /* TRANSPORT_METRICS_METRICS_H */
