/* Segments are written by field numbers, as a second opinion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "client/archive/join/segment_join.h"
#include "client/archive/join/segment_plan.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define FILES_MAX 8u
#define TEXT_MAX  2048u

static const uint8_t recording[16] = { 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
	0, 2 };

struct fixture {
	char folder[32];
	char paths[FILES_MAX][64];
	size_t n;
	struct pb_writer file;  /* being written */
	struct pb_writer packet;
	/* Of the joined trace: "5:17 " for event 17 of sequence 5, ... */
	char text[TEXT_MAX];
	char notes[TEXT_MAX];
	size_t n_stored; /* calls of stored() */
	bool expand;
	struct segment_join_report report;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->folder, "/tmp/test_join.XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	pb_writer_init(&f->file);
	pb_writer_init(&f->packet);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < f->n; i++)
		unlink(f->paths[i]);
	rmdir(f->folder);
	pb_writer_done(&f->file);
	pb_writer_done(&f->packet);
	free(f);
	return 0;
}

/* ---- packets ---- */

static void
add_packet(struct fixture *f)
{
	pb_put_bytes(&f->file, 1, f->packet.data, f->packet.len);
	pb_writer_reset(&f->packet);
}

/* Stands for a loss of event(): the mark of a cut, and nothing was lost. */
#define DIVIDED 1000u

/* flags: 1 cleared, 2 needs state; 0: none. */
static void
event(struct fixture *f, uint32_t sequence, uint64_t number, uint32_t flags,
    uint32_t dropped)
{
	pb_put_uint(&f->packet, 900, number); /* not a message: just a number */
	pb_put_uint(&f->packet, 10, sequence);
	if (flags != 0)
		pb_put_uint(&f->packet, 13, flags);
	if (dropped != 0)
		pb_put_uint(&f->packet, 42, dropped == DIVIDED ? 1 : dropped);
	if (dropped == DIVIDED)
		pb_put_uint(&f->packet, 1004, 1);
	add_packet(f);
}

/* Of the service, common to all machines. */
static void
common(struct fixture *f, uint64_t timestamp, bool repeated)
{
	pb_put_uint(&f->packet, 8, timestamp);
	pb_put_uint(&f->packet, 10, 1);
	if (repeated)
		pb_put_uint(&f->packet, 1003, 1);
	add_packet(f);
}

static void
repeated_event(struct fixture *f, uint32_t sequence, uint64_t number)
{
	pb_put_uint(&f->packet, 900, number);
	pb_put_uint(&f->packet, 10, sequence);
	pb_put_uint(&f->packet, 1003, 1);
	add_packet(f);
}

static void
begin(struct fixture *f, uint32_t number, uint32_t machine, bool split)
{
	size_t segment = pb_nest_begin(&f->packet, 1001), uuid;

	pb_put_bytes(&f->packet, 1, recording, 16);
	pb_put_string(&f->packet, 2, "always");
	pb_put_uint(&f->packet, 3, number);
	if (machine != 0)
		pb_put_uint(&f->packet, 6, machine);
	if (split)
		pb_put_uint(&f->packet, 7, 1);
	pb_nest_end(&f->packet, segment);
	pb_put_uint(&f->packet, 10, 1);
	add_packet(f);
	uuid = pb_nest_begin(&f->packet, 89);
	pb_put_uint(&f->packet, 1, 100 + number);
	pb_put_uint(&f->packet, 2, machine);
	pb_nest_end(&f->packet, uuid);
	pb_put_uint(&f->packet, 10, 1);
	add_packet(f);
}

/* TraceStats with so many flushes, and the end. */
static void
end(struct fixture *f, uint64_t flushes)
{
	size_t segment, stats = pb_nest_begin(&f->packet, 35);

	pb_put_uint(&f->packet, 12, flushes);
	pb_nest_end(&f->packet, stats);
	pb_put_uint(&f->packet, 10, 1);
	add_packet(f);
	segment = pb_nest_begin(&f->packet, 1001);
	pb_put_bytes(&f->packet, 9, "", 0);
	pb_nest_end(&f->packet, segment);
	pb_put_uint(&f->packet, 10, 1);
	add_packet(f);
}

static void
save(struct fixture *f)
{
	char *path = f->paths[f->n], folder[sizeof(f->folder)];
	FILE *file;

	memcpy(folder, f->folder, sizeof(folder));
	snprintf(path, sizeof(f->paths[0]), "%s/%zu", folder, f->n++);
	assert_non_null(file = fopen(path, "w"));
	assert_int_equal(fwrite(f->file.data, 1, f->file.len, file),
	    f->file.len);
	fclose(file);
	pb_writer_reset(&f->file);
}

/* Puts all packets of the file so far into a compressed one. */
static void
compress_file(struct fixture *f)
{
	uLongf len = compressBound(f->file.len);
	uint8_t *out = malloc(len);

	assert_int_equal(compress(out, &len, f->file.data, f->file.len), Z_OK);
	pb_writer_reset(&f->file);
	pb_put_bytes(&f->packet, 50, out, len);
	add_packet(f);
	free(out);
}

/* ---- the joined trace ---- */

static void
say(struct fixture *f, const char *format, ...)
{
	size_t len = strlen(f->text);
	va_list args;

	va_start(args, format);
	vsnprintf(f->text + len, TEXT_MAX - len, format, args);
	va_end(args);
}

static int
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	uint64_t number = 0, sequence = 0, dropped = 0, at = 0, flushes = 0;
	uint64_t msb = 0, lsb = 0;
	struct fixture *f = arg;
	struct pb_reader r, inner;
	struct pb_field e, g;

	PB_FOREACH(&e, &r, data, len) {
		if (e.number == 8)
			at = e.value;
		if (e.number == 10)
			sequence = e.value;
		if (e.number == 42)
			dropped = e.value;
		if (e.number == 900)
			number = e.value;
		assert_true(e.number < 1001);
		if (e.number != 35 && e.number != 89)
			continue;
		PB_FOREACH(&g, &inner, e.data, e.len) {
			if (e.number == 35 && g.number == 12)
				flushes = g.value;
			if (e.number == 89)
				*(g.number == 1 ? &msb : &lsb) = g.value;
		}
	}
	if (msb != 0)
		say(f, "uuid%d,%d ", (int)msb, (int)lsb);
	else if (flushes != 0)
		say(f, "stats%d ", (int)flushes);
	else if (at != 0)
		say(f, "@%d ", (int)at);
	else
		say(f, "%d:%d%s ", (int)sequence, (int)number,
		    dropped != 0 ? "!" : "");
	return 0;
}

static int
stored_cb(void *arg, const uint8_t *framed, size_t len)
{
	struct fixture *f = arg;
	struct pb_reader r, inner;
	struct pb_field e, g;
	uint8_t plain[4096];
	uLongf n;

	f->n_stored++;
	PB_FOREACH(&e, &r, framed, len) {
		assert_int_equal(e.number, 1);
		inner = (struct pb_reader){ e.data, e.data + e.len, false };
		if (pb_next(&inner, &g) && g.number == 50) {
			n = sizeof(plain);
			assert_int_equal(uncompress(plain, &n, g.data, g.len),
			    Z_OK);
			PB_FOREACH(&g, &inner, plain, n)
				packet_cb(f, g.data, g.len);
		} else {
			packet_cb(f, e.data, e.len);
		}
	}
	return 0;
}

static void
note_cb(void *arg, const char *text)
{
	struct fixture *f = arg;
	size_t len = strlen(f->notes);

	/* Without the folder, which is another one each time. */
	if (strncmp(text, f->folder, strlen(f->folder)) == 0)
		text += strlen(f->folder) + 1;
	snprintf(f->notes + len, TEXT_MAX - len, "%s\n", text);
}

static void
join(struct fixture *f)
{
	const struct segment_join_ops ops = { packet_cb,
		f->expand ? NULL : stored_cb, note_cb, f };
	const char *paths[FILES_MAX];
	struct segment_plan plan;
	char err[256] = "";
	size_t i;

	/* In no order. */
	for (i = 0; i < f->n; i++)
		paths[i] = f->paths[f->n - 1 - i];
	assert_int_equal(segment_plan_make(&plan, paths, f->n, err,
	    sizeof(err)), 0);
	assert_int_equal(plan.n_recordings, 1);
	f->text[0] = f->notes[0] = '\0';
	f->n_stored = 0;
	assert_int_equal(segment_join_run(&f->report, &plan.recordings[0],
	    &ops, err, sizeof(err)), 0);
	segment_plan_done(&plan);
}

/* ---- cases ---- */

static void
two_segments(struct fixture *f)
{
	begin(f, 1, 0, false);
	common(f, 10, false);
	event(f, 5, 1, 0, 0);
	event(f, 6, 1, 1, 0);
	end(f, 3);
	save(f);
	begin(f, 2, 0, false);
	common(f, 10, true);
	repeated_event(f, 5, 1);
	event(f, 6, 2, 2, DIVIDED);
	event(f, 6, 3, 2, 0);
	event(f, 5, 2, 0, 0);
	common(f, 20, false);
	end(f, 4);
}

static uint64_t
bytes_of_files(const struct fixture *f)
{
	uint64_t sum = 0;
	struct stat st;
	size_t i;

	for (i = 0; i < f->n; i++) {
		assert_int_equal(stat(f->paths[i], &st), 0);
		sum += (uint64_t)st.st_size;
	}
	return sum;
}

static void
segments_become_the_recording_again(void **state)
{
	struct fixture *f = *state;

	two_segments(f);
	save(f);
	join(f);
	assert_string_equal(f->text, "uuid1,2 @10 5:1 6:1 6:2 6:3 5:2 @20 "
	    "stats7 ");
	assert_string_equal(f->notes, "");
	assert_int_equal(f->report.packets, 9);
	assert_int_equal(f->report.bytes, bytes_of_files(f));
	assert_int_equal(f->report.files, 2);
	assert_int_equal(f->report.unfinished, 0);
}

static void
a_later_segment_alone_keeps_what_was_repeated(void **state)
{
	struct fixture *f = *state;
	char first[64];

	two_segments(f);
	save(f);
	f->n = 1;
	strcpy(first, f->paths[0]);
	strcpy(f->paths[0], f->paths[1]);
	join(f);
	assert_string_equal(f->text, "uuid1,2 @10 5:1 6:2! 6:3 5:2 @20 "
	    "stats4 ");
	strcpy(f->paths[0], first);
	f->n = 2;
}

static void
a_loss_that_is_real_stays(void **state)
{
	struct fixture *f = *state;

	begin(f, 1, 0, false);
	event(f, 6, 1, 1, 0);
	end(f, 1);
	save(f);
	begin(f, 2, 0, false);
	event(f, 6, 2, 3, 1);
	event(f, 6, 3, 2, 1);
	event(f, 7, 1, 2, 65);
	/* A producer's own. */
	pb_put_uint(&f->packet, 42, 1);
	event(f, 8, 1, 2, 0);
	/* A cut's mark, behind a field that says no loss. */
	pb_put_uint(&f->packet, 42, 0);
	event(f, 9, 1, 2, DIVIDED);
	end(f, 1);
	save(f);
	join(f);
	assert_string_equal(f->text, "uuid1,2 6:1 6:2! 6:3! 7:1! 8:1! 9:1 "
	    "stats2 ");
}

static void
a_missing_segment_is_told_and_marked(void **state)
{
	struct fixture *f = *state;

	two_segments(f);
	save(f);
	begin(f, 4, 0, false);
	common(f, 10, true); /* is there already */
	common(f, 15, true); /* was in segment 3 */
	event(f, 6, 9, 2, DIVIDED);
	end(f, 1);
	save(f);
	join(f);
	assert_string_equal(f->text, "uuid1,2 @10 5:1 6:1 6:2 6:3 5:2 @20 "
	    "@15 6:9! stats8 ");
	assert_string_equal(f->notes, "segment 3 of the recording is "
	    "missing\n");
	assert_int_equal(f->report.gaps, 1);
}

static void
a_segment_without_its_end_is_joined_as_far_as_it_goes(void **state)
{
	struct fixture *f = *state;

	begin(f, 1, 0, false);
	event(f, 6, 1, 1, 0);
	event(f, 6, 2, 2, 0);
	f->file.len -= 2; /* cut within the packet */
	save(f);
	begin(f, 2, 0, false);
	event(f, 6, 3, 2, DIVIDED);
	end(f, 1);
	save(f);
	join(f);
	assert_string_equal(f->text, "uuid1,2 6:1 6:3! stats1 ");
	assert_non_null(strstr(f->notes, "0 ends within a packet or is damaged "
	    "at byte "));
	assert_int_equal(f->report.unfinished, 1);
}

static void
compressed_packets_are_copied_where_nothing_changes(void **state)
{
	struct fixture *f = *state;

	event(f, 5, 1, 0, 0);
	event(f, 5, 2, 0, 0);
	compress_file(f);
	{
		struct pb_writer keep = f->file;

		pb_writer_init(&f->file);
		begin(f, 1, 0, false);
		event(f, 5, 0, 0, 0);
		compress_file(f);
		pb_put_raw(&f->file, keep.data, keep.len);
		pb_writer_done(&keep);
	}
	end(f, 1);
	save(f);
	join(f);
	assert_string_equal(f->text, "uuid1,2 5:0 5:1 5:2 stats1 ");
	assert_int_equal(f->n_stored, 1);
	assert_int_equal(f->report.packets, 5);
	f->expand = true;
	join(f);
	assert_string_equal(f->text, "uuid1,2 5:0 5:1 5:2 stats1 ");
	assert_int_equal(f->n_stored, 0);
}

/* Files of the collector and of the machine 7; both have the packet 10, 20. */
static void
machines(struct fixture *f, uint32_t number)
{
	begin(f, number, 0, true);
	common(f, 10 * number, false);
	event(f, 5, 1, 0, 0);
	common(f, 10 * number + 5, false);
	event(f, 5, 2, 0, 0);
	end(f, 3);
	save(f);
	begin(f, number, 7, true);
	common(f, 10 * number, true);
	event(f, 9, 1, 0, 0);
	common(f, 10 * number + 5, true);
	event(f, 9, 2, 0, 0);
	end(f, 4);
	save(f);
}

static void
files_of_machines_are_merged_by_what_they_share(void **state)
{
	struct fixture *f = *state;

	machines(f, 1);
	machines(f, 2);
	join(f);
	assert_string_equal(f->text, "uuid1,2 "
	    "@10 5:1 9:1 @15 5:2 9:2 @20 5:1 9:1 @25 5:2 9:2 stats14 ");
	assert_int_equal(f->report.gaps, 0);
}

static void
a_machine_alone_has_what_it_shared(void **state)
{
	struct fixture *f = *state;
	char spare[2][64];

	machines(f, 1);
	machines(f, 2);
	memcpy(spare[0], f->paths[0], 64);
	memcpy(spare[1], f->paths[2], 64);
	memcpy(f->paths[0], f->paths[1], 64);
	memcpy(f->paths[1], f->paths[3], 64);
	f->n = 2;
	join(f);
	assert_string_equal(f->text, "uuid1,2 @10 9:1 @15 9:2 @20 9:1 @25 9:2 "
	    "stats8 ");
	memcpy(f->paths[2], spare[0], 64);
	memcpy(f->paths[3], spare[1], 64);
	f->n = 4;
}

static void
a_trace_that_is_no_segment_stays_as_it_is(void **state)
{
	struct fixture *f = *state;

	common(f, 10, false);
	event(f, 5, 1, 2, 1);
	pb_put_uint(&f->packet, 900, 3);
	add_packet(f);
	save(f);
	join(f);
	assert_string_equal(f->text, "@10 5:1! 0:3 ");
	assert_int_equal(f->report.unfinished, 0);
}

static void
the_same_segment_twice_is_taken_once(void **state)
{
	struct fixture *f = *state;
	const char *paths[3];
	struct segment_plan plan;
	char err[256] = "";

	two_segments(f);
	save(f);
	paths[0] = f->paths[0];
	paths[1] = f->paths[1];
	paths[2] = f->paths[0];
	assert_int_equal(segment_plan_make(&plan, paths, 3, err, sizeof(err)),
	    0);
	assert_int_equal(plan.n, 2);
	assert_int_equal(plan.doubled, 1);
	assert_int_equal(plan.recordings[0].n, 2);
	assert_string_equal(plan.files[0].head.recording, "always");
	segment_plan_done(&plan);
}

static void
files_that_are_no_traces_are_refused(void **state)
{
	struct fixture *f = *state;
	const char *paths[1];
	struct segment_plan plan;
	char err[256] = "";

	pb_put_raw(&f->file, "hello", 5);
	save(f);
	paths[0] = f->paths[0];
	assert_int_equal(segment_plan_make(&plan, paths, 1, err, sizeof(err)),
	    -1);
	assert_non_null(strstr(err, "is no trace"));
	paths[0] = "/nowhere/at/all";
	assert_int_equal(segment_plan_make(&plan, paths, 1, err, sizeof(err)),
	    -1);
	assert_string_equal(err, "cannot open /nowhere/at/all: No such file or "
	    "directory");
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(segments_become_the_recording_again),
		CASE(a_later_segment_alone_keeps_what_was_repeated),
		CASE(a_loss_that_is_real_stays),
		CASE(a_missing_segment_is_told_and_marked),
		CASE(a_segment_without_its_end_is_joined_as_far_as_it_goes),
		CASE(compressed_packets_are_copied_where_nothing_changes),
		CASE(files_of_machines_are_merged_by_what_they_share),
		CASE(a_machine_alone_has_what_it_shared),
		CASE(a_trace_that_is_no_segment_stays_as_it_is),
		CASE(the_same_segment_twice_is_taken_once),
		CASE(files_that_are_no_traces_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
