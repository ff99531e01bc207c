/*
 * protovm_journal: changes of a state that can be taken back, all at once.
 *
 * An undo log: every change goes through one of the calls below, which makes it
 * and notes what it takes to undo it.  Nothing that was in the state before is
 * freed until the packet's end, so that nodes keep their addresses and memory
 * may be twice the limit.  A call that returns false (no memory) has changed
 * nothing.
 */
#ifndef SERVICE_PROTOVM_PROTOVM_JOURNAL_H
#define SERVICE_PROTOVM_PROTOVM_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/protovm/protovm_state.h"

struct protovm_change;

/* Zero-initialised: empty, but for its memory. */
struct protovm_journal {
	struct protovm_memory *memory; /* borrowed */
	struct protovm_change *changes;
	uint32_t n;
	uint32_t cap;
};

/* The node gets another value; false: v stays the caller's. */
bool protovm_journal_value(struct protovm_journal *j, struct protovm_node *n,
    const struct protovm_value *v) MUST_CHECK;
/* Into the tree of n's value, at a place; false: child stays the caller's. */
bool protovm_journal_insert(struct protovm_journal *j, struct protovm_node *n,
    uint32_t place, struct protovm_node *child) MUST_CHECK;
bool protovm_journal_remove(struct protovm_journal *j, struct protovm_node *n,
    uint32_t place) MUST_CHECK;
/*
 * Puts a new node, an ARRAY or a MAP, where n's child at a place is, and the
 * child into it, with `key`.  Returns the new node; NULL: no memory.
 */
struct protovm_node *protovm_journal_wrap(struct protovm_journal *j,
    struct protovm_node *n, uint32_t place, enum protovm_kind kind,
    uint64_t key) MUST_CHECK;
/*
 * Makes a MAP of n, an ARRAY whose elements have their keys in `key`.  Of those
 * with equal keys the first stays.
 */
bool protovm_journal_map(struct protovm_journal *j, struct protovm_node *n)
    MUST_CHECK;

/* Memory that protovm_journal_commit() would free. */
size_t protovm_journal_garbage(const struct protovm_journal *j);
void protovm_journal_commit(struct protovm_journal *j);
void protovm_journal_undo(struct protovm_journal *j);
/* Frees the memory of an empty journal. */
void protovm_journal_done(struct protovm_journal *j);

#endif /* SERVICE_PROTOVM_PROTOVM_JOURNAL_H */
