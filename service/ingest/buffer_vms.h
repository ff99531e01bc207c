/*
 * buffer_vms: the ProtoVM instances of a session's buffer.  Each has the
 * program of a data source and merges the packets of that source's producers
 * into a state as they leave the buffer: in a trace, the state stands for the
 * packets that the ring has overwritten (reference trace-buffer.md, "ProtoVM").
 *
 * A program has one instance for each machine and user whose producers offer it
 * under the same data source's name: ids in the states of two machines mean
 * different things, and a user cannot reach into another's state.  A packet goes
 * to the instances of its producer, in the order in which they were made, until
 * one applies it, as importers do.  Packets that a trace would not have, as they
 * are invalid, are not applied.
 *
 * Knows sessions only as the buffer's owner; session_vms.c decides what becomes
 * an instance, and readback.c where it stands in a trace.
 */
#ifndef SERVICE_INGEST_BUFFER_VMS_H
#define SERVICE_INGEST_BUFFER_VMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct buffer_vm;
struct buffer_vms;
struct pb_writer;
struct producer;
struct protovm;
struct sequence_map;
struct trace_buffer;

#define BUFFER_VMS_MAX           1024u  /* instances and refusals, a buffer */
#define BUFFER_VMS_OF_PRODUCER   4u     /* instances that get its packets */
#define BUFFER_VMS_PRODUCERS_MAX 65536u /* producers of a buffer's instances */

/*
 * Listens to tb from now on.  NULL: no memory.  Must live as long as tb does
 * (trace_buffer_watch()).
 */
struct buffer_vms *buffer_vms_new(struct trace_buffer *tb) MUST_CHECK;
void buffer_vms_free(struct buffer_vms *v);
/*
 * Copies the instances for a clone of the buffer, with their states of now; the
 * copy listens to nothing.  NULL: no memory.
 */
struct buffer_vms *buffer_vms_clone(const struct buffer_vms *v) MUST_CHECK;
/* Empties all states, as the buffer was emptied. */
void buffer_vms_clear(struct buffer_vms *v);

/* A program as a producer offers it: all borrowed. */
struct buffer_vm_offer {
	const struct producer *producer;
	const char *source; /* the data source's name */
	const uint8_t *program;
	size_t len;
};

/* The instance, or refusal, for such an offer; NULL: none yet. */
struct buffer_vm *buffer_vms_find(const struct buffer_vms *v,
    const struct buffer_vm_offer *o);
/*
 * Makes an instance, which owns vm then; vm NULL: a refusal, which is only
 * remembered.  NULL: no memory, or BUFFER_VMS_MAX; vm is the caller's.
 */
struct buffer_vm *buffer_vms_add(struct buffer_vms *v,
    const struct buffer_vm_offer *o, struct protovm *vm) MUST_CHECK;
/*
 * Has the producer's packets applied to the instance, if it is none of its
 * producers yet.  Nothing happens for a refusal.  -1: no memory, or a limit.
 */
int buffer_vms_join(struct buffer_vms *v, struct buffer_vm *vm,
    const struct producer *p) MUST_CHECK;

/* Whether any producer offered a program for a data source of this name. */
bool buffer_vms_has_source(const struct buffer_vms *v, const char *source);
/*
 * For each instance with packets that could not be applied, a sentence for the
 * consumer.
 */
void buffer_vms_complain(const struct buffer_vms *v,
    void (*say)(void *arg, const char *sentence), void *arg);

/* ---- Into a trace ---- */

/*
 * To be called before a pass over the buffers.  Makes instances due for the
 * trace: those that it does not have yet, those that applied a packet since that
 * the trace will not have, and those with a producer that it does not name.
 * Gives the sequences of their producers ids in m, so that the trace can say
 * which they are.
 */
void buffer_vms_begin_pass(struct buffer_vms *v, struct sequence_map *m);
/* The next instance that is due; NULL: none. */
struct buffer_vm *buffer_vms_due(const struct buffer_vms *v);
/* The i-th instance that the trace has; NULL: no more. */
struct buffer_vm *buffer_vms_in_trace(const struct buffer_vms *v, size_t i);
/* Appends its packet, as the service writes it. */
void buffer_vms_put(const struct buffer_vms *v, const struct buffer_vm *vm,
    struct sequence_map *m, int32_t uid, struct pb_writer *out);
/* The trace has that packet. */
void buffer_vms_was_put(struct buffer_vms *v, struct buffer_vm *vm,
    struct sequence_map *m);

#endif /* SERVICE_INGEST_BUFFER_VMS_H */
