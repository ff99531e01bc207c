/*
 * file_check: counts what a trace file holds.
 */
#ifndef TESTS_BENCH_INGEST_FILE_CHECK_H
#define TESTS_BENCH_INGEST_FILE_CHECK_H

#include <stdint.h>

struct file_check {
	uint64_t packets; /* with for_testing */
	uint64_t losses;  /* packets that say something before them was lost */
};

/* Dies when the file is not a sequence of whole packets. */
void file_check(int fd, struct file_check *out);

#endif /* TESTS_BENCH_INGEST_FILE_CHECK_H */
