/*
 * segment_command: runs a command for each segment that is whole
 * (--on-segment).
 *
 * The shell runs the command, in which "$1" is the segment's path, one segment
 * at a time and in their order; TRIBUTARY_SEGMENT_* in its environment say the
 * rest.  A command that fails, hangs or falls behind costs the recording
 * nothing: it is told, and at most `backlog` segments wait.  Knows no packets.
 * Belongs to the loop's thread.
 */
#ifndef CLIENT_RECORD_SEGMENT_COMMAND_H
#define CLIENT_RECORD_SEGMENT_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/loop/loop.h"

struct record_live;
struct segment_command;
struct segment_written;

/* Everything is borrowed. */
struct segment_command_setup {
	struct loop *loop;
	struct record_live *live; /* is told of failures */
	const char *command;
	int folder_fd;
	const char *folder;
	const char *recording;
	unsigned backlog;     /* segments that wait at most; 0: 100,000 */
	unsigned patience_ms; /* a longer run is told; 0: ten minutes */
	/* A command has ended, and none waits; on a turn of its own. */
	loop_fn idle;
	void *arg;
};

/* NULL: no memory. */
struct segment_command *segment_command_new(
    const struct segment_command_setup *setup) MUST_CHECK;
/* Ends a command that runs.  NULL is fine. */
void segment_command_free(struct segment_command *c);

void segment_command_add(struct segment_command *c,
    const struct segment_written *of);
/* The segment, below the folder, whose command runs; NULL: none runs. */
const char *segment_command_path(const struct segment_command *c);
/* Segments whose command runs or waits. */
unsigned segment_command_left(const struct segment_command *c);
/* Ends the command that runs, and tells which segments have had none. */
void segment_command_give_up(struct segment_command *c);

#endif /* CLIENT_RECORD_SEGMENT_COMMAND_H */
