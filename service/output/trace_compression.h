/*
 * trace_compression: how a config wants its trace compressed.
 */
#ifndef SERVICE_OUTPUT_TRACE_COMPRESSION_H
#define SERVICE_OUTPUT_TRACE_COMPRESSION_H

#include "transport/sink/packet_compressor.h"

struct config;

/*
 * How the trace is compressed, in a file and for ReadBuffers.  `compression`
 * wins over the older compression_type, and zstd in it over deflate.
 */
struct packet_compression trace_compression(const struct config *c);

#endif /* SERVICE_OUTPUT_TRACE_COMPRESSION_H */
