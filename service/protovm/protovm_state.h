/*
 * protovm_state: the state of a machine, a tree of values, and its memory.
 *
 * A value is bytes until a program looks inside; then it is parsed, one level
 * at a time, into a message of fields, each a value.  A field that occurs more
 * than once, or that a program takes for repeated, is an array, or a map whose
 * elements are found by a key.
 */
#ifndef SERVICE_PROTOVM_PROTOVM_STATE_H
#define SERVICE_PROTOVM_PROTOVM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/protovm/protovm.h"
#include "transport/wire/pb_reader.h"

enum protovm_kind {
	PROTOVM_EMPTY, /* selected, but nothing was ever put there */
	PROTOVM_VARINT,
	PROTOVM_FIXED32,
	PROTOVM_FIXED64,
	PROTOVM_BYTES,
	PROTOVM_MESSAGE, /* trees of nodes, from here on */
	PROTOVM_ARRAY,
	PROTOVM_MAP
};

struct protovm_value {
	union {
		uint64_t number;
		uint8_t *data;            /* BYTES, owned; NULL if empty */
		struct protovm_node *top; /* owned */
	};
	uint32_t len; /* BYTES */
	uint8_t kind; /* enum protovm_kind */
};

struct protovm_node {
	struct protovm_node *left, *right; /* protovm_tree */
	uint64_t key; /* MESSAGE: the field's number; MAP: the key */
	struct protovm_value value;
	uint32_t count; /* of the subtree whose top this is */
	bool is_duplicate; /* in a map's old order only: protovm_journal */
	uint64_t merge; /* ARRAY: the last merge that has replaced it */
};

struct protovm_memory {
	size_t limit;
	size_t used; /* with all that a rollback would need */
};

/* While a packet is applied, up to twice the limit.  False: no more. */
bool protovm_memory_take(struct protovm_memory *m, size_t n) MUST_CHECK;
/* Bytes of a node, without its value. */
size_t protovm_node_size(void);
/* Bytes that a value has taken, with all nodes in it. */
size_t protovm_value_size(const struct protovm_value *v);

/* An EMPTY node, in no tree.  NULL: no memory. */
struct protovm_node *protovm_node_new(struct protovm_memory *m,
    uint64_t key) MUST_CHECK;
/* With its value. */
void protovm_node_free(struct protovm_memory *m, struct protovm_node *n);
/* The value becomes EMPTY. */
void protovm_value_free(struct protovm_memory *m, struct protovm_value *v);

/* A scalar or a copy of bytes; the old value is not looked at. */
bool protovm_value_copy(struct protovm_memory *m, struct protovm_value *to,
    const struct pb_field *from) MUST_CHECK;

bool protovm_is_scalar(const struct protovm_value *v);

/* Appends a value as field `number`, arrays and maps as its occurrences. */
void protovm_value_put(const struct protovm_value *v, uint32_t number,
    struct pb_writer *out);
/* Appends the fields of a value that is EMPTY, BYTES or a MESSAGE. */
void protovm_fields_put(const struct protovm_value *v, struct pb_writer *out);

#endif /* SERVICE_PROTOVM_PROTOVM_STATE_H */
