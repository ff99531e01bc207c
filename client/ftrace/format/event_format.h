/*
 * event_format: where the fields of a kernel event lie in its record, by the
 * text of tracefs' events/GROUP/EVENT/format.
 *
 * Pure.  The text is the kernel's, but modules and probes that an administrator
 * adds choose names in it, and a file that is cut short is refused.
 */
#ifndef CLIENT_FTRACE_FORMAT_EVENT_FORMAT_H
#define CLIENT_FTRACE_FORMAT_EVENT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Limits beyond which a text is refused; the kernel's largest has 60 fields. */
#define EVENT_FORMAT_FIELDS_MAX 512u
#define EVENT_FORMAT_TEXT_MAX   (256u * 1024u)

/*
 * Representation of a field's bytes.  Records are in the byte order of the
 * machine.
 */
enum event_field_kind {
	/* A number of 1, 2, 4 or 8 bytes; is_signed says how to widen it. */
	EVENT_FIELD_NUMBER,
	/* char[N]: text up to the first NUL, or all of size. */
	EVENT_FIELD_TEXT,
	/* char[], size 0: text from offset up to a NUL or the record's end. */
	EVENT_FIELD_TEXT_REST,
	/*
	 * 4 bytes: the low 16 bits are an offset from the record's begin (for
	 * REL: from the end of this field), the high 16 a length in bytes.
	 */
	EVENT_FIELD_DATA_LOC_TEXT,
	EVENT_FIELD_DATA_LOC_BYTES, /* array of another type than char */
	EVENT_FIELD_REL_LOC_TEXT,
	EVENT_FIELD_REL_LOC_BYTES,
	/* An address in the kernel, 4 or 8 bytes: of text, */
	EVENT_FIELD_TEXT_POINTER, /* const char *, char * */
	EVENT_FIELD_POINTER,      /* or of anything else */
	/* All else: arrays of numbers, structs; size may be 0: up to the end. */
	EVENT_FIELD_BYTES,
};

struct event_field {
	const char *name; /* owned by the format; "" if the kernel has none */
	const char *type; /* as in C, without name and [N]: "unsigned long" */
	uint16_t offset;
	uint16_t size;
	bool is_signed;
	enum event_field_kind kind;
};

/* Fields lie within a record of at least `size` bytes. */
struct event_format {
	const char *group; /* "sched" */
	const char *name;  /* "sched_switch" */
	uint16_t id;       /* common_type of its records; not 0 */
	uint16_t size;     /* end of the last field, in bytes */
	/* The event's own fields, without those that all events have. */
	const struct event_field *fields;
	size_t n_fields;
	const struct event_field *common; /* common_type, common_pid, ... */
	size_t n_common;
	uint16_t pid_offset; /* of common_pid, an int32_t */
};

/*
 * Parses len bytes of a format file.  One allocation, event_format_free()d by
 * the caller; nothing of group and text is kept.  NULL, with a sentence in err:
 * no format, or one that no record can have.
 */
struct event_format *event_format_parse(const char *group, const char *text,
    size_t len, char *err, size_t err_size) MUST_CHECK;
void event_format_free(struct event_format *f);

/* The event's own field of that name, or NULL. */
const struct event_field *event_format_field(const struct event_format *f,
    const char *name);

#endif /* CLIENT_FTRACE_FORMAT_EVENT_FORMAT_H */
