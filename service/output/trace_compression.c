#include "service/output/trace_compression.h"

#include "service/config/config.h"

struct packet_compression
trace_compression(const struct config *c)
{
	const Perfetto__Protos__TraceConfig *pb = c->pb;
	const Perfetto__Protos__TraceConfig__CompressionConfig *new =
	    pb->compression;
	struct packet_compression how = { .kind = PACKET_PLAIN };

	if (new != NULL && new->zstd != NULL) {
		how.kind = PACKET_ZSTD;
		how.level = new->zstd->level;
	} else if ((new != NULL && new->deflate != NULL) ||
	    pb->compression_type ==
	    PERFETTO__PROTOS__TRACE_CONFIG__COMPRESSION_TYPE__COMPRESSION_TYPE_DEFLATE) {
		how.kind = PACKET_DEFLATE;
	}
	return how;
}
