#include "service/output/file_config.h"

#include <string.h>

#include "service/config/config.h"
#include "service/model/model.h"
#include "service/settings/settings.h"
#include "service/sink/file_sink.h"
#include "transport/segment/segment_path.h"

#define WRITE_PERIOD_DEFAULT_MS 5000u
#define WRITE_PERIOD_MIN_MS 100u
/*
 * Bytes of max_file_size_bytes that are kept for the statistics at the file's
 * end: a 32nd, but not less or more than this.
 */
#define STATS_BYTES_MIN 512u
#define STATS_BYTES_OF_BUFFER 128u
#define STATS_BYTES_MAX (16u * 1024u)
/* With write periods up to this, WRITE_FLUSH_AUTO flushes every 5 s instead. */
#define AUTO_FLUSH_PERIOD_MS 5000u

uint32_t
file_config_write_period_ms(const struct session *s)
{
	uint32_t ms = s->config->pb->file_write_period_ms;

	if (ms == 0)
		return WRITE_PERIOD_DEFAULT_MS;
	return ms < WRITE_PERIOD_MIN_MS ? WRITE_PERIOD_MIN_MS : ms;
}

bool
file_config_flushes_each_write(const struct session *s)
{
	switch (s->config->pb->write_flush_mode) {
	case PERFETTO__PROTOS__TRACE_CONFIG__WRITE_FLUSH_MODE__WRITE_FLUSH_ENABLED:
		return true;
	case PERFETTO__PROTOS__TRACE_CONFIG__WRITE_FLUSH_MODE__WRITE_FLUSH_DISABLED:
		return false;
	default:
		return file_config_write_period_ms(s) > AUTO_FLUSH_PERIOD_MS;
	}
}

uint32_t
file_config_flush_period_ms(const struct session *s)
{
	switch (s->config->pb->write_flush_mode) {
	case PERFETTO__PROTOS__TRACE_CONFIG__WRITE_FLUSH_MODE__WRITE_FLUSH_ENABLED:
	case PERFETTO__PROTOS__TRACE_CONFIG__WRITE_FLUSH_MODE__WRITE_FLUSH_DISABLED:
		return 0;
	default:
		return file_config_write_period_ms(s) <= AUTO_FLUSH_PERIOD_MS ?
		    AUTO_FLUSH_PERIOD_MS : 0;
	}
}

bool
file_config_syncs(const struct session *s)
{
	return s->config->pb->fflush_post_write ==
	    PERFETTO__PROTOS__TRACE_CONFIG__FFLUSH_MODE__FFLUSH_ENABLED;
}

long
file_config_owner(const struct session *s)
{
	return s->owner.auth == PEER_UNIX ? (long)s->owner.uid : -1;
}

/*
 * Clients of traced name the trace directory in output_path, too; without it
 * the path is below that directory.  sink_path_create() refuses any other.
 */
const char *
file_config_path(const struct session *s)
{
	const char *path = s->config->pb->output_path;
	const char *dir = s->folder.path;
	size_t n = dir != NULL ? strlen(dir) : 0;

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n == 0 || path[0] != '/' || strncmp(path, dir, n) != 0 ||
	    path[n] != '/')
		return path;
	return path + n + strspn(path + n, "/");
}

bool
file_config_segments(const struct session *s, struct file_sink_segments *out)
{
	const Perfetto__Protos__TraceConfig *pb = s->config->pb;
	const Perfetto__Protos__SegmentConfig *c = pb->tributary_segments;

	if (c == NULL || pb->output_path == NULL)
		return false;
	out->by_machine = c->split ==
	    PERFETTO__PROTOS__SEGMENT_CONFIG__SPLIT__BY_MACHINE;
	out->pattern = c->file_pattern != NULL ? c->file_pattern :
	    segment_path_default(out->by_machine);
	out->begun_by = s->begun_by;
	out->begun_by_len = s->begun_by_len;
	out->recording = "recording";
	if (c->recording != NULL && c->recording[0] != '\0')
		out->recording = c->recording;
	else if (pb->unique_session_name != NULL &&
	    pb->unique_session_name[0] != '\0')
		out->recording = pb->unique_session_name;
	return true;
}

uint64_t
file_config_stats_bytes(const struct session *s, uint64_t max_bytes)
{
	uint64_t room = max_bytes / 32;
	uint64_t least = STATS_BYTES_MIN + STATS_BYTES_OF_BUFFER *
	    s->n_buffers;

	if (room > STATS_BYTES_MAX)
		room = STATS_BYTES_MAX;
	if (room < least)
		room = least;
	return room < max_bytes / 2 ? room : max_bytes / 2;
}
