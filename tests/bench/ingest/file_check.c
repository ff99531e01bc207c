#include "tests/bench/ingest/file_check.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/load/load_conn.h"
#include "transport/wire/pb_reader.h"

/* Field numbers of TracePacket. */
enum { PREVIOUS_PACKET_DROPPED = 42, FOR_TESTING = 900 };

static void
check_packet(const uint8_t *data, size_t len, struct file_check *out)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		out->packets += f.number == FOR_TESTING;
		out->losses += f.number == PREVIOUS_PACKET_DROPPED &&
		    f.value != 0;
	}
	if (r.bad)
		load_die("a packet in the file does not parse");
}

void
file_check(int fd, struct file_check *out)
{
	struct pb_reader r;
	struct pb_field f;
	struct stat st;
	void *map;

	memset(out, 0, sizeof(*out));
	if (fstat(fd, &st) < 0 || st.st_size == 0)
		load_die("the trace file is empty");
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		load_die("mmap: %s", strerror(errno));
	pb_init(&r, map, (size_t)st.st_size);
	while (pb_next(&r, &f))
		check_packet(f.data, f.len, out);
	if (r.bad)
		load_die("the trace file does not end on a whole packet");
	munmap(map, (size_t)st.st_size);
}
