#include "tests/bench/tls/pacer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/ingest/process.h"
#include "tests/load/load_producer.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define TICK_MS       1   /* one producer writes a chunk every tick */
#define CHUNK_PACKETS 20u
#define CHUNK_ROOM    4080u
#define TIMES_MAX     200000u

struct course {
	struct load_producer producers[PACER_PRODUCERS];
	uint64_t rounds; /* chunks of each producer */
	double *ms;      /* TIMES_MAX */
	size_t n_ms;
};

static void
put_packet(struct pb_writer *w, uint32_t producer, uint64_t number)
{
	static const char filler[60];
	size_t mark, inner;

	pb_put_uint(w, 8, UINT64_C(1) << 50);
	mark = pb_nest_begin(w, 900);
	pb_put_uint(w, 2, producer);
	pb_put_uint(w, 3, number);
	inner = pb_nest_begin(w, 5);
	pb_put_bytes(w, 4, filler, sizeof(filler));
	pb_nest_end(w, inner);
	pb_nest_end(w, mark);
}

static void
write_chunk(struct course *c, uint32_t producer)
{
	struct load_producer *p = &c->producers[producer];
	uint8_t chunk[CHUNK_ROOM];
	struct pb_writer packet;
	uint64_t began = load_now_ns();
	size_t used = 0;
	unsigned i;

	pb_writer_init(&packet);
	for (i = 0; i < CHUNK_PACKETS; i++) {
		pb_writer_reset(&packet);
		put_packet(&packet, producer, c->rounds * CHUNK_PACKETS + i);
		used += pb_encode_varint(chunk + used, packet.len);
		memcpy(chunk + used, packet.data, packet.len);
		used += packet.len;
	}
	pb_writer_done(&packet);
	load_producer_chunk(p, p->instances[0].buffer, 1, (uint32_t)c->rounds,
	    CHUNK_PACKETS, 0, chunk, used);
	load_producer_sync(p);
	if (c->n_ms < TIMES_MAX)
		c->ms[c->n_ms++] = (double)(load_now_ns() - began) / 1e6;
}

static void
answer(int fd)
{
	if (write(fd, "!", 1) != 1)
		_exit(1);
}

static bool
ordered(int orders, int wait_ms)
{
	struct pollfd pfd = { orders, POLLIN, 0 };
	char byte;

	if (poll(&pfd, 1, wait_ms) <= 0)
		return false;
	if (read(orders, &byte, 1) != 1)
		_exit(1);
	return true;
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
report(struct course *c, int result)
{
	struct pacer_result r = { .packets = c->rounds * CHUNK_PACKETS };

	qsort(c->ms, c->n_ms, sizeof(*c->ms), compare_doubles);
	r.p50_ms = c->ms[c->n_ms / 2];
	r.p99_ms = c->ms[c->n_ms * 99 / 100];
	r.max_ms = c->ms[c->n_ms - 1];
	if (write(result, &r, sizeof(r)) != sizeof(r))
		_exit(1);
}

static void
run(const char *address, int orders, int result)
{
	struct course *c = calloc(1, sizeof(*c));
	char name[32];
	uint32_t i;
	bool stop = false;

	if (c == NULL || (c->ms = calloc(TIMES_MAX, sizeof(*c->ms))) == NULL)
		load_die("no memory");
	for (i = 0; i < PACER_PRODUCERS; i++) {
		snprintf(name, sizeof(name), "pacer.%u", i);
		load_producer_open(&c->producers[i], address, name,
		    PACER_SOURCE, 0);
	}
	answer(result);
	load_producers_wait_started(c->producers, PACER_PRODUCERS, 1);
	answer(result);
	while (!stop) {
		for (i = 0; i < PACER_PRODUCERS; i++) {
			write_chunk(c, i);
			stop |= ordered(orders, TICK_MS);
		}
		c->rounds++;
	}
	report(c, result);
	load_producers_wait_stopped(c->producers, PACER_PRODUCERS);
	answer(result);
	_exit(0);
}

static void
expect_answer(struct pacer *p)
{
	char byte;

	if (read(p->result, &byte, 1) != 1)
		load_die("the pacer died");
}

void
pacer_start(struct pacer *p, const char *address, int cpu)
{
	int orders[2], result[2];

	if (pipe(orders) != 0 || pipe(result) != 0)
		load_die("pipe: %s", strerror(errno));
	if ((p->pid = fork()) < 0)
		load_die("fork: %s", strerror(errno));
	if (p->pid == 0) {
		close(orders[1]);
		close(result[0]);
		process_pin(0, cpu);
		run(address, orders[0], result[1]);
	}
	close(orders[0]);
	close(result[1]);
	p->orders = orders[1];
	p->result = result[0];
	expect_answer(p);
}

void
pacer_go(struct pacer *p)
{
	expect_answer(p);
}

void
pacer_stop(struct pacer *p, struct pacer_result *out)
{
	if (write(p->orders, "!", 1) != 1 ||
	    read(p->result, out, sizeof(*out)) != sizeof(*out))
		load_die("the pacer died");
}

void
pacer_end(struct pacer *p)
{
	expect_answer(p);
	close(p->orders);
	close(p->result);
	waitpid(p->pid, NULL, 0);
}

static void
take_packet(const uint8_t *data, size_t len, uint64_t *next, uint64_t *strays)
{
	struct pb_reader packet, inner;
	struct pb_field f, g;
	uint64_t producer, number;

	pb_init(&packet, data, len);
	while (pb_next(&packet, &f)) {
		if (f.number != 900)
			continue;
		producer = number = UINT64_MAX;
		pb_init(&inner, f.data, f.len);
		while (pb_next(&inner, &g)) {
			if (g.number == 2)
				producer = g.value;
			else if (g.number == 3)
				number = g.value;
		}
		if (producer < PACER_PRODUCERS && number == next[producer])
			next[producer]++;
		else
			++*strays;
	}
}

uint64_t
pacer_missing(int file, const struct pacer_result *r)
{
	uint64_t next[PACER_PRODUCERS] = { 0 }, missing = 0, strays = 0;
	struct pb_reader trace;
	struct pb_field f;
	struct stat st;
	uint8_t *map;
	size_t i;

	if (fstat(file, &st) != 0)
		load_die("the trace: %s", strerror(errno));
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, file, 0);
	if (map == MAP_FAILED)
		load_die("the trace: %s", strerror(errno));
	pb_init(&trace, map, (size_t)st.st_size);
	while (pb_next(&trace, &f))
		if (f.number == 1)
			take_packet(f.data, f.len, next, &strays);
	munmap(map, (size_t)st.st_size);
	for (i = 0; i < PACER_PRODUCERS; i++)
		missing += r->packets - next[i];
	return missing + strays;
}
