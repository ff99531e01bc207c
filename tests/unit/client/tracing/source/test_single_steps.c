/*
 * A program that is killed leaves every packet that it wrote whole in the
 * memory, at whatever instruction: a child is stepped through writes and
 * flushes by ptrace(), and after each step the memory is read as a service
 * does that scrapes it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/tracing/memory/chunk_writer.h"
#include "client/tracing/memory/own_memory.h"
#include "transport/base/compiler.h"
#include "transport/wire/pb_reader.h"

#define BUFFER 1

struct progress {
	_Atomic size_t put; /* packets whose chunk_writer_put() has returned */
	_Atomic bool over;
};

static struct shm *shm;
static struct progress *progress;

static void
wake(void *arg)
{
}

/* ---- The child ---- */

static void
put_in_place(struct chunk_writer *w, size_t len)
{
	uint8_t *room = chunk_writer_room(w, CHUNK_WRITER_SMALL_MAX);

	if (room == NULL)
		_exit(3);
	memset(room, 7, len);
	chunk_writer_publish(w, len);
	progress->put++;
}

static void
put(struct chunk_writer *w, size_t len)
{
	static const uint8_t data[600] = { 1 };

	if (!chunk_writer_put(w, data, len))
		_exit(4);
	progress->put++;
}

static void
flush(struct chunk_writer *w)
{
	own_enter();
	chunk_writer_flush(w);
	own_leave();
}

/* Small packets, some in place; a large one over two chunks; a full chunk. */
static void
write_some(struct chunk_writer *w)
{
	size_t i;

	put(w, 20);
	put_in_place(w, 9);
	flush(w);
	put(w, 5);
	for (i = 0; i < 3; i++)
		put(w, 600);
	flush(w);
	put(w, 40);
	while (w->end - w->at > 140)
		put_in_place(w, 100);
	put(w, (size_t)(w->end - w->at) - 2);
	flush(w);
}

static void
child(void)
{
	struct chunk_writer w;
	struct chunk_memory *m = chunk_memory_new(shm, wake, NULL);

	if (m == NULL || chunk_writer_init(&w, m, BUFFER,
	    TRIBUTARY_FULL_DROP) != 0)
		_exit(2);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	write_some(&w);
	progress->over = true;
	_exit(0);
}

/* ---- The service ---- */

struct scraped {
	size_t packets;
	bool open;
};

static bool
count(void *arg, const struct shm_chunk *c, bool complete)
{
	struct scraped *s = arg;
	const uint8_t *at = c->payload, *end = c->payload + c->len;
	unsigned i, n = c->num_fragments - (complete ? 0 : 1);
	uint64_t size = 0;

	for (i = 0; i < n; i++) {
		at = pb_varint(at, end, &size);
		assert_non_null(at);
		assert_true(size <= (size_t)(end - at));
		at += size;
		s->open = i + 1 == n && complete &&
		    (c->flags & SHM_LAST_CONTINUES_ON_NEXT) != 0;
		if (size > 0 && !s->open)
			s->packets++;
	}
	return true;
}

static size_t
scrape(void)
{
	struct scraped s = { 0 };

	shm_scrape(shm, false, count, &s);
	return s.packets;
}

static void
no_instant_hides_a_packet(void **state)
{
	size_t steps = 0, most = 0, seen, put;
	int status;
	pid_t pid;

	if (HAS_SANITIZER)
		skip(); /* millions of steps */
	shm = shm_new(65536, 4096);
	assert_non_null(shm);
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(progress, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		skip(); /* nobody may be traced here */
	while (!progress->over) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0)
			skip(); /* not on this machine */
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status));
		assert_int_equal(WSTOPSIG(status), SIGTRAP);
		put = progress->put;
		seen = scrape();
		/* A packet is there a little before its call returns. */
		assert_in_range(seen, put, put + 1);
		assert_true(seen >= most);
		most = seen;
		steps++;
	}
	ptrace(PTRACE_KILL, pid, NULL, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_true(most > 10);
	assert_true(steps > 1000);
	munmap(progress, sizeof(*progress));
	shm_free(shm);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_instant_hides_a_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
