#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "client/archive/fetch/trace_out.h"
#include "client/archive/fetch/trace_zip.h"

static char text[] = "packets of a trace";
#define TEXT_BYTES (sizeof(text) - 1)

static char err[512];
static uint8_t zip[4096];
static size_t zip_bytes;

static int
make_file(const char *contents, size_t len)
{
	int fd = memfd_create("member", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, contents, len), len);
	return fd;
}

/* An archive with "a", of a file, and "b", of memory. */
static void
make_zip(uint64_t plain_max)
{
	int in = make_file(text, TEXT_BYTES), fd = make_file("", 0);
	struct trace_out *o = trace_out_into(fd, err, sizeof(err));
	struct trace_zip *z;
	ssize_t n;

	assert_non_null(o);
	assert_non_null(z = trace_zip_new(o, plain_max));
	assert_int_equal(trace_zip_file(z, "a", in, TEXT_BYTES, err,
	    sizeof(err)), 0);
	assert_int_equal(trace_zip_text(z, "b", "x", 1, err, sizeof(err)), 0);
	assert_int_equal(trace_zip_finish(z, err, sizeof(err)), 0);
	assert_int_equal(trace_out_finish(o, err, sizeof(err)), 0);
	n = pread(fd, zip, sizeof(zip), 0);
	assert_true(n > 0);
	zip_bytes = (size_t)n;
	trace_zip_free(z);
	trace_out_close(o);
	close(in);
	close(fd);
}

static uint64_t
number(size_t at, size_t bytes)
{
	uint64_t v = 0;

	assert_true(at + bytes <= zip_bytes);
	while (bytes-- > 0)
		v = v << 8 | zip[at + bytes];
	return v;
}

/* Offsets by APPNOTE.TXT 6.3, typed as a second opinion. */
static void
members_are_stored_with_size_and_sum_in_front(void **state)
{
	size_t end;

	make_zip(TRACE_ZIP_PLAIN_MAX);
	assert_int_equal(number(0, 4), 0x04034b50);
	assert_int_equal(number(4, 2), 20); /* Trace Processor knows no later */
	assert_int_equal(number(6, 2), 0);
	assert_int_equal(number(8, 2), 0);
	assert_int_equal(number(14, 4), crc32(0, (const Bytef *)text,
	    TEXT_BYTES));
	assert_int_equal(number(18, 4), TEXT_BYTES);
	assert_int_equal(number(22, 4), TEXT_BYTES);
	assert_int_equal(number(26, 2), 1);
	assert_int_equal(number(28, 2), 0);
	assert_memory_equal(zip + 30, "a", 1);
	assert_memory_equal(zip + 31, text, TEXT_BYTES);
	end = zip_bytes - 22;
	assert_int_equal(number(end, 4), 0x06054b50);
	assert_int_equal(number(end + 10, 2), 2);
	/* The second entry of the directory, behind the first, of 46 + 1. */
	assert_int_equal(number(number(end + 16, 4) + 47 + 42, 4),
	    31 + TEXT_BYTES);
	assert_int_equal(number(end + 16, 4) + number(end + 12, 4), end);
}

static void
large_members_and_far_ones_are_zip64(void **state)
{
	size_t end, end64, entry, second;

	make_zip(10);
	assert_int_equal(number(4, 2), 45);
	assert_int_equal(number(18, 4), 0xffffffff);
	assert_int_equal(number(28, 2), 20);
	assert_int_equal(number(31, 2), 1);
	assert_int_equal(number(33, 2), 16);
	assert_int_equal(number(35, 8), TEXT_BYTES);
	assert_int_equal(number(43, 8), TEXT_BYTES);
	assert_memory_equal(zip + 51, text, TEXT_BYTES);
	second = 51 + TEXT_BYTES;
	assert_int_equal(number(second + 4, 2), 20); /* "b" is small */
	end = zip_bytes - 22;
	assert_int_equal(number(end + 16, 4), 0xffffffff);
	assert_int_equal(number(end - 20, 4), 0x07064b50);
	end64 = number(end - 20 + 8, 8);
	assert_int_equal(number(end64, 4), 0x06064b50);
	assert_int_equal(number(end64 + 32, 8), 2);
	entry = number(end64 + 48, 8);
	assert_int_equal(number(entry, 4), 0x02014b50);
	entry += 46 + 1 + 20;
	assert_int_equal(number(entry, 4), 0x02014b50);
	assert_int_equal(number(entry + 42, 4), 0xffffffff);
	assert_int_equal(number(entry + 47, 2), 1);
	assert_int_equal(number(entry + 49, 2), 8);
	assert_int_equal(number(entry + 51, 8), second);
}

static void
a_file_that_became_shorter_is_told(void **state)
{
	int in = make_file(text, TEXT_BYTES), fd = make_file("", 0);
	struct trace_out *o = trace_out_into(fd, err, sizeof(err));
	struct trace_zip *z = trace_zip_new(o, TRACE_ZIP_PLAIN_MAX);

	assert_int_equal(trace_zip_file(z, "c1.pftrace", in, TEXT_BYTES + 1,
	    err, sizeof(err)), -1);
	assert_non_null(strstr(err, "c1.pftrace: it is shorter"));
	trace_zip_free(z);
	trace_out_close(o);
	close(in);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_stored_with_size_and_sum_in_front),
		cmocka_unit_test(large_members_and_far_ones_are_zip64),
		cmocka_unit_test(a_file_that_became_shorter_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
