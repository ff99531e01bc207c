/*
 * protovm: the interpreter of producers' programs (VmProgram).  When a ring
 * overwrites a producer's packets, its program merges each into a state, a
 * protobuf message of an unknown schema.
 *
 * Pure: bytes, a program and a state in; a state out.  Knows no buffers, no
 * sessions and no clock.  Program, packets and states may be hostile: memory
 * and steps are bounded, recursion is bounded by the program's depth, and every
 * error is a verdict.  Used by one thread at a time; programs are immutable.
 *
 * Meaning of the instructions: Perfetto's src/protovm (parser, executor,
 * rw_proto_cursor), and protovm_program.h where ours is stricter.
 */
#ifndef SERVICE_PROTOVM_PROTOVM_H
#define SERVICE_PROTOVM_PROTOVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct pb_writer;
struct protovm;
struct protovm_program;

/* Limits of a program, in bytes and instructions (nested ones count). */
#define PROTOVM_PROGRAM_BYTES_MAX  (64u << 10)
#define PROTOVM_INSTRUCTIONS_MAX   4096u
/* Nested instructions and path components of one branch, together. */
#define PROTOVM_DEPTH_MAX          128u
/* Path components of one branch in the state, below protobuf's limit of 100. */
#define PROTOVM_STATE_DEPTH_MAX    64u
/* Registers of a machine, 0 to 31; undefined when a packet begins. */
#define PROTOVM_REGISTERS          32u
/*
 * Steps that one packet may take, some 5 to 10 ns of work each: a base, and
 * more for each of its bytes, up to some 50 ms.  Packets that take of the base
 * draw on a pool, to which each packet adds a little: a flood of small packets
 * costs steps by its bytes, as large ones do.  Parsing what packets have
 * stored as bytes takes steps that those bytes have earned, and no more than
 * the memory limit lets it.
 */
#define PROTOVM_STEPS_BASE         4096u
#define PROTOVM_STEPS_REFILL       64u
#define PROTOVM_STEPS_POOL         (64u * PROTOVM_STEPS_BASE)
#define PROTOVM_STEPS_PER_BYTE     16u
#define PROTOVM_STEPS_MAX          (8u << 20)

/*
 * Checks a serialised VmProgram and copies it.  NULL with a sentence in err: it
 * is malformed, of an unknown version, beyond a limit, has an instruction that
 * could never run, or memory is short.
 */
struct protovm_program *protovm_program_new(const uint8_t *data, size_t len,
    char *err, size_t err_size) MUST_CHECK;
struct protovm_program *protovm_program_ref(struct protovm_program *p);
void protovm_program_unref(struct protovm_program *p);
/* The serialised program, as it came; borrowed. */
const uint8_t *protovm_program_bytes(const struct protovm_program *p,
    size_t *len);

enum protovm_verdict {
	PROTOVM_OK,
	/*
	 * An instruction selected something that is not there, and the program
	 * ends at that; the instructions before it have been applied.  The
	 * usual verdict on packets that the program is not about.
	 */
	PROTOVM_SKIPPED,
	/* With all that follow, the state is as it was before the packet. */
	PROTOVM_ABORTED,   /* packet or state are not what the program expects */
	PROTOVM_BAD_PACKET, /* malformed where the program reads it */
	PROTOVM_NO_MEMORY, /* the state would outgrow its limit, or malloc() */
	PROTOVM_TOO_MANY_STEPS,
	PROTOVM_OFF, /* not run: too many packets took too many steps */
	PROTOVM_VERDICTS
};

/*
 * A machine with an empty state, which takes its own reference to the program.
 * memory_limit is in bytes, of the state with its bookkeeping; while a packet
 * is applied, the memory may be twice that.  NULL: no memory.
 */
struct protovm *protovm_new(struct protovm_program *program,
    size_t memory_limit) MUST_CHECK;
void protovm_free(struct protovm *vm);

/*
 * A machine of its own with the same program, limit and state, as
 * protovm_set_state() loads it, and with counters at 0.  NULL: no memory.
 */
struct protovm *protovm_clone(const struct protovm *vm) MUST_CHECK;

/*
 * Replaces the state by a serialised one.  -1: malformed, beyond the memory
 * limit or no memory; the state is as it was.  0 bytes: the empty state.
 */
int protovm_set_state(struct protovm *vm, const uint8_t *data, size_t len)
    MUST_CHECK;

/* Applies a TracePacket, without tag and length. */
enum protovm_verdict protovm_apply(struct protovm *vm, const uint8_t *packet,
    size_t len);

/*
 * Appends the fields of the state: by field number, elements of arrays in their
 * order, of maps by key.  The same state gives the same bytes.  out->failed
 * says whether memory was short.
 */
void protovm_state(const struct protovm *vm, struct pb_writer *out);

/* Bytes of the machine and its state, but not of its program. */
size_t protovm_memory(const struct protovm *vm);
size_t protovm_memory_limit(const struct protovm *vm);
struct protovm_program *protovm_program(const struct protovm *vm); /* borrowed */

/* Packets by verdict, since the machine was made. */
uint64_t protovm_count(const struct protovm *vm, enum protovm_verdict v);
/* Whether the machine is switched off for good; the state is the last one. */
bool protovm_is_off(const struct protovm *vm);
/* Why the last packet was not applied, a clause for people; static. */
const char *protovm_reason(const struct protovm *vm);

#endif /* SERVICE_PROTOVM_PROTOVM_H */
