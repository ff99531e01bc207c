/*
 * protovm_program: a VmProgram, checked and laid out for the interpreter.
 *
 * Refused here, where Perfetto's machine would abort when it gets there: an
 * instruction without a known operation, a path that has no field where one is
 * due, registers that do not exist, create_if_not_exist or a map key in the
 * source, and is_repeated for both cursors.  Registers begin with 0.
 *
 * As in Perfetto's machine, the cursor BOTH moves the destination alone, and an
 * element of an array is created where an index is one past its end.
 */
#ifndef SERVICE_PROTOVM_PROTOVM_PROGRAM_H
#define SERVICE_PROTOVM_PROTOVM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/protovm/protovm.h"

enum protovm_op {
	PROTOVM_SELECT,
	PROTOVM_REG_LOAD,
	PROTOVM_MERGE,
	PROTOVM_SET,
	PROTOVM_DEL,
	PROTOVM_INSERT
};

/* VmInstruction.AbortLevel */
enum protovm_level {
	PROTOVM_SKIP = 1,
	PROTOVM_BREAK_OUTER = 2,
	PROTOVM_ABORT = 3
};

struct protovm_instruction {
	enum protovm_op op;
	enum protovm_level level;
	/* Index behind the nested instructions, which follow this one. */
	uint32_t end;
	uint32_t path; /* SELECT: index of its first component */
	uint32_t n_path;
	uint8_t reg;    /* REG_LOAD */
	bool in_source; /* SELECT, REG_LOAD: the cursor */
	bool create;
	bool skip_submessages;
	bool del_if_src_empty;
};

enum protovm_step {
	PROTOVM_FIELD,
	PROTOVM_EACH,   /* every occurrence of a field */
	PROTOVM_INDEX,  /* arg: index of the element */
	PROTOVM_INDEX_REG,
	PROTOVM_KEY     /* arg: number of the field that is the key */
};

struct protovm_component {
	enum protovm_step step;
	uint32_t field;
	uint32_t arg;
	uint8_t reg;  /* INDEX_REG, KEY: read; EACH: written if `stores` */
	bool stores;
};

struct protovm_program {
	unsigned refs;
	uint8_t *data; /* as it came */
	size_t len;
	struct protovm_instruction *instructions; /* in the order of the wire */
	uint32_t n_instructions;
	struct protovm_component *components;
	uint32_t n_components;
};

#endif /* SERVICE_PROTOVM_PROTOVM_PROGRAM_H */
