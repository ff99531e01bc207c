/*
 * protovm_run: one packet on its way through a program; private to the room.
 *
 * protovm_run.c is the flow of the program, protovm_cursor.c moves the cursors,
 * and protovm_write.c has the instructions that change the state.
 */
#ifndef SERVICE_PROTOVM_PROTOVM_RUN_H
#define SERVICE_PROTOVM_PROTOVM_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/protovm/protovm.h"
#include "service/protovm/protovm_journal.h"
#include "service/protovm/protovm_program.h"
#include "service/protovm/protovm_state.h"
#include "transport/wire/pb_reader.h"

/* Credit that a byte earns when it is stored: protovm_run_parse_steps(). */
#define PROTOVM_CREDIT_PER_BYTE 5u

struct protovm {
	struct protovm_program *program; /* a reference */
	struct protovm_memory memory;
	struct protovm_journal journal;
	struct protovm_node root; /* EMPTY, BYTES or a MESSAGE */
	/* Steps that stored bytes have earned for being parsed once. */
	uint64_t credit;
	uint64_t merges; /* so many have begun */
	uint64_t pool;   /* steps beyond what packets earn by their bytes */
	uint64_t counts[PROTOVM_VERDICTS];
	unsigned strikes;
	bool is_off;
	const char *reason; /* static */
};

/* Its result, of an instruction, a list of them, or a part. */
enum protovm_outcome {
	PROTOVM_DONE,
	PROTOVM_MISSING, /* selected what is not there: abort_level decides */
	PROTOVM_FAILED   /* the packet's end; the run has verdict and reason */
};

struct protovm_cursors {
	struct pb_field source; /* BYTES or a scalar */
	struct protovm_node *node; /* in the state; NULL: deleted */
	struct protovm_node *parent; /* NULL: node is the root */
	uint32_t place; /* of node in parent's tree */
};

struct protovm_run {
	struct protovm *vm;
	const struct protovm_program *program;
	struct protovm_cursors at;
	const struct protovm_node *deleted; /* last one; to compare only */
	uint64_t registers[PROTOVM_REGISTERS];
	uint32_t defined; /* a bit for each register */
	uint64_t steps; /* left */
	uint64_t given; /* steps at the begin */
	enum protovm_verdict verdict;
	const char *reason;
};

/* Applies a packet; the journal has all changes.  DONE, MISSING or FAILED. */
enum protovm_outcome protovm_run(struct protovm_run *r,
    const uint8_t *packet, size_t len);

enum protovm_outcome protovm_run_fail(struct protovm_run *r,
    enum protovm_verdict v, const char *reason);
enum protovm_outcome protovm_run_no_memory(struct protovm_run *r);
/* False: none left; the run has failed. */
bool protovm_run_steps(struct protovm_run *r, uint64_t n) MUST_CHECK;
/*
 * For parsing what was stored, which is paid for by the bytes when they are
 * stored: a small packet may be the first to look into a large field.
 */
bool protovm_run_parse_steps(struct protovm_run *r, uint64_t n) MUST_CHECK;
/* Steps for finding one of n nodes. */
uint64_t protovm_run_find_cost(uint32_t n);

/* ---- protovm_cursor.c ---- */

/* The component's field, element or entry becomes what the cursor is at. */
enum protovm_outcome protovm_source_enter(struct protovm_run *r,
    const struct protovm_component *c);
enum protovm_outcome protovm_state_enter(struct protovm_run *r,
    const struct protovm_component *c, bool create);
/*
 * The field of the cursor's message as an ARRAY; *array is NULL if there is
 * none.
 */
enum protovm_outcome protovm_state_array(struct protovm_run *r, uint32_t field,
    struct protovm_node **array);
/* Makes a MESSAGE of n, which is one, or EMPTY, or BYTES. */
enum protovm_outcome protovm_state_parse(struct protovm_run *r,
    struct protovm_node *n);

/* ---- protovm_write.c ---- */

enum protovm_outcome protovm_write_merge(struct protovm_run *r,
    const struct protovm_instruction *ins);
enum protovm_outcome protovm_write_set(struct protovm_run *r);
enum protovm_outcome protovm_write_insert(struct protovm_run *r);
enum protovm_outcome protovm_write_del(struct protovm_run *r);

#endif /* SERVICE_PROTOVM_PROTOVM_RUN_H */
