/*
 * segment_entry: the description of one trace file in an archive, as the
 * catalogue has it.  All of it follows from the file's bytes and name.
 *
 * Knows no files and no database.  Zero-initialised is empty.
 */
#ifndef CLIENT_ARCHIVE_SEGMENT_ENTRY_H
#define CLIENT_ARCHIVE_SEGMENT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

#define SEGMENT_SHA256 32u
#define SEGMENT_UUID   16u

/* A span of time; unless known, the numbers mean nothing. */
struct segment_span {
	bool known;
	int64_t first_ns, last_ns;
};

/* A machine with packets or a name in the segment. */
struct segment_machine {
	uint32_t id;      /* in the trace; 0: the collector's own */
	char *name;       /* owned; "": the trace has none */
	uint64_t packets; /* of producers, without repeated ones */
	uint64_t bytes;
	struct segment_span wall; /* by the collector's clock */
};

struct segment_loss {
	char *text;        /* the sentence of `tributary inspect`; owned */
	char *cause;       /* owned */
	const char *unit;  /* static */
	const char *place; /* "session", "relay", "collector", "kernel"; static */
	uint64_t count;
	uint64_t bytes;      /* 0: not known */
	int buffer;          /* -1: of none */
	int64_t machine_id;  /* -1: of none */
	bool at_least;       /* count is a lower bound */
};

struct segment_trigger {
	char *name, *producer; /* owned */
	uint32_t machine_id;
	bool has_wall;
	int64_t wall_ns;
	/* The cut that began the segment; its packet is in the one before. */
	bool begun_by;
};

struct segment_process {
	uint32_t machine_id;
	int32_t pid;
	char *name; /* owned; "": not known */
};

struct segment_entry {
	char *path;     /* below the archive's folder; owned */
	uint64_t bytes; /* of the file */
	int64_t mtime_ns;
	uint8_t sha256[SEGMENT_SHA256];
	char *verdict; /* word of `tributary inspect`: "whole", "lossy"; owned */
	char *problem; /* its sentence; "": the file is whole; owned */
	bool has_uuid, has_recording_uuid;
	uint8_t uuid[SEGMENT_UUID]; /* of the trace */
	/* Set for segments of Tributary, up to unanswered. */
	uint8_t recording_uuid[SEGMENT_UUID];
	uint32_t number;       /* 0: no segment */
	const char *cause;     /* of the cut that begins it, or NULL; static */
	const char *end_cause; /* of the cut that ends it, or NULL; static */
	bool is_last;          /* it is whole, and the recording ends with it */
	uint32_t unanswered;
	char *recording; /* of a segment, else unique_session_name, or ""; owned */
	char *machine;   /* it is split by machine, and of this one; or ""; owned */
	uint64_t packets; /* without repeated ones */
	uint64_t lost;    /* things counted in losses, and gaps without cause */
	struct segment_span wall, boot; /* by the collector's clocks */
	struct segment_machine *machines; /* owned, as the lists below */
	size_t n_machines;
	struct segment_loss *losses;
	size_t n_losses;
	struct segment_trigger *triggers;
	size_t n_triggers;
	char **data_sources;
	size_t n_data_sources;
	struct segment_process *processes;
	size_t n_processes;
};

void segment_entry_done(struct segment_entry *e);

#endif /* CLIENT_ARCHIVE_SEGMENT_ENTRY_H */
