/*
 * ftrace_rings: losses of the kernel's ftrace buffers, each buffer's once.
 *
 * Data sources linux.ftrace of one producer may read the same buffer, and each
 * writes the kernel's counts of it.  Their sequences do not tell their buffer;
 * the trace's config does, where all of its data sources linux.ftrace have the
 * same one.  Otherwise losses are listed for each sequence: one of a shared
 * buffer is there several times then, and none is left out.
 */
#ifndef CLIENT_TRACE_FTRACE_RINGS_H
#define CLIENT_TRACE_FTRACE_RINGS_H

#include <stddef.h>

struct pb_field;
struct trace_loss;
struct trace_sequences;

enum ftrace_rings_told {
	FTRACE_RINGS_UNKNOWN,
	FTRACE_RINGS_ONE, /* on each machine */
	FTRACE_RINGS_SEVERAL,
};

/* Zeroed is ready to use, and needs no end. */
struct ftrace_rings {
	enum ftrace_rings_told told;
	char name[256]; /* instance_name of the one; "": tracefs itself */
};

/* Takes a DataSourceConfig, of any data source. */
void ftrace_rings_take(struct ftrace_rings *r, const struct pb_field *config);

/* As ftrace_losses_list(), of all sequences. */
size_t ftrace_rings_list(const struct ftrace_rings *r,
    const struct trace_sequences *t, struct trace_loss *out, size_t max);

#endif /* CLIENT_TRACE_FTRACE_RINGS_H */
