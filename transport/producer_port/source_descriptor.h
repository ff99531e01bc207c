/*
 * source_descriptor: an encoded DataSourceDescriptor, and what collector and
 * relay need to know of it.  Input is untrusted.
 */
#ifndef TRANSPORT_PRODUCER_PORT_SOURCE_DESCRIPTOR_H
#define TRANSPORT_PRODUCER_PORT_SOURCE_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/*
 * Limit for all descriptors of a producer together: each may be as long as a
 * frame, and a producer may have thousands.  (Chromium's are far below 1 MiB.)
 */
#define SOURCE_DESCRIPTORS_BYTES_MAX (8u * 1024u * 1024u)

/* Embedded in its owner; zero-initialised, then read. */
struct source_descriptor {
	char *name;       /* owned; "" when it has none */
	uint8_t *encoded; /* owned; as it came */
	size_t len;
	bool will_notify_on_start;
	bool will_notify_on_stop;
	bool handles_incremental_state_clear;
	bool no_flush;
	const uint8_t *program; /* protovm_program, in encoded; NULL: none */
	size_t program_len;
	/* tributary_kernel_losses, in encoded; NULL: none */
	const uint8_t *kernel_losses;
	size_t kernel_losses_len;
};

/*
 * Parses a copy of encoded into d, and frees d's former contents.  -1: it does
 * not parse, or there is no memory, and d is as it was.
 */
int source_descriptor_read(struct source_descriptor *d, const uint8_t *encoded,
    size_t len) MUST_CHECK;
/*
 * The name in an encoded descriptor, borrowed from it, not terminated; NULL: it
 * has none, or does not parse.
 */
const char *source_descriptor_name(const uint8_t *encoded, size_t len,
    size_t *name_len);
bool source_descriptor_is_named(const struct source_descriptor *d,
    const char *name, size_t len);
void source_descriptor_done(struct source_descriptor *d);

#endif /* TRANSPORT_PRODUCER_PORT_SOURCE_DESCRIPTOR_H */
