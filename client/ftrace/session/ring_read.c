/*
 * Reading a buffer of the kernel's: sweeps over all processors, by round robin
 * in bounded turns of the loop, so that one that is busy starves neither the
 * others nor the loop.
 *
 * A sweep is done with a processor whose next page begins after the sweep did:
 * everything that was in the buffer has been read, and what our own reading
 * makes the kernel write (system calls, wakeups) is left to the next sweep.  A
 * sweep that no flush waits for also ends at a page that is less than half
 * full, the one that the kernel is writing into, and saves a read().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ftrace/page/page_reader.h"
#include "client/ftrace/session/ftrace_internal.h"
#include "transport/base/tailq.h"

/* FtraceParseStatus of a read() that failed, and of one that was short. */
enum { READ_FAILED = 2, READ_SHORT = 3 };

static void
fault(struct ring *r, unsigned status)
{
	struct ftrace_session *s;

	TAILQ_FOREACH(s, &r->sessions, next)
		session_take_fault(s, status);
}

/* One page.  False: there is none; the processor is done. */
static bool
read_page(struct ring *r, struct ring_cpu *cpu, uint8_t *page)
{
	size_t size = r->ftrace->layout.page_size;
	ssize_t n;

	do
		n = read(cpu->fd, page, size);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)size)
		return true;
	/*
	 * EAGAIN: nothing is left.  The kernel may lack memory, may be resizing
	 * the buffer, and the processor may be offline.
	 */
	if (n < 0 && errno != EAGAIN && errno != ENOMEM && errno != EBUSY &&
	    errno != ENODEV)
		fault(r, READ_FAILED);
	if (n > 0)
		fault(r, READ_SHORT);
	return false;
}

/* Without a clock to compare with, a buffer's length bounds a sweep. */
static uint32_t
pages_of_buffer(const struct ring *r)
{
	const struct page_layout *layout = &r->ftrace->layout;
	uint64_t data = layout->page_size - layout->data_offset;
	/* The size is of data; the kernel has one page more, for readers. */
	uint64_t n = ((uint64_t)r->buffer_kb * 1024u + data - 1) / data + 1;

	return n < BATCH_PAGES ? BATCH_PAGES :
	    n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* Whether nothing of before the sweep is behind this page. */
static bool
is_last(const struct ring *r, const struct ring_cpu *cpu, const uint8_t *page)
{
	const struct page_layout *layout = &r->ftrace->layout;
	struct page_reader reader;

	if (!page_reader_init(&reader, page, layout->page_size, layout))
		return false;
	if (r->sweep_begin != 0 ? reader.time >= r->sweep_begin :
	    cpu->n_pages >= pages_of_buffer(r))
		return true;
	/* The first may be the rest of one that was read before. */
	return !r->sweep_all && cpu->n_pages > 1 &&
	    reader.used < layout->page_size / 2;
}

/* Pages of one processor into packets; how many. */
static unsigned
read_cpu(struct ring *r, unsigned index)
{
	struct ring_cpu *cpu = &r->cpus[index];
	size_t size = r->ftrace->layout.page_size;
	struct ftrace_session *s;
	uint8_t *page = r->ftrace->pages;
	unsigned n = 0;

	while (!cpu->done && n < BATCH_PAGES) {
		if (!read_page(r, cpu, page)) {
			cpu->done = true;
			break;
		}
		cpu->n_pages++;
		n++;
		cpu->done = is_last(r, cpu, page);
		page += size;
	}
	if (n == 0)
		return 0;
	TAILQ_FOREACH(s, &r->sessions, next)
		session_take_pages(s, index, r->ftrace->pages, n);
	return n;
}

static void
end_sweep(struct ring *r)
{
	struct ftrace_session *s, *next;

	r->sweep = SWEEP_NONE;
	TAILQ_FOREACH_SAFE(s, &r->sessions, next, next) {
		session_swept(s, r->sweep_no);
	}
}

/* The next processor that is not done; false: all are. */
static bool
next_cpu(struct ring *r, unsigned *index)
{
	unsigned i;

	for (i = 0; i < r->n_cpus; i++) {
		*index = (r->cursor + i) % r->n_cpus;
		if (!r->cpus[*index].done) {
			r->cursor = (*index + 1) % r->n_cpus;
			return true;
		}
	}
	return false;
}

/* False: the sweep has ended. */
static bool
turn(struct ring *r)
{
	struct ftrace_session *s;
	unsigned index, n = 0;
	bool more;

	while ((more = next_cpu(r, &index)) && n < TURN_PAGES)
		n += read_cpu(r, index);
	TAILQ_FOREACH(s, &r->sessions, next)
		session_tell_threads(s);
	return more;
}

static void
turn_cb(void *arg)
{
	struct ring *r = arg;

	if (turn(r))
		loop_defer(r->ftrace->loop, &r->turn, turn_cb, r);
	else
		end_sweep(r);
}

/* Only of a clock that has no counterpart elsewhere in a trace. */
static void
read_both_clocks(struct ring *r)
{
	char path[TRACEFS_PATH_MAX], *text;
	struct cpu_stats stats;
	size_t len;

	r->clock_time = r->boot_time = 0;
	if (r->clock != RING_GLOBAL)
		return;
	ring_path(r, path, "per_cpu/cpu0/stats");
	/* First boot's: the other takes time to be written as text. */
	r->boot_time = loop_boottime_ns();
	if ((text = tracefs_read(r->ftrace->tracefs, path, &len)) == NULL)
		return;
	cpu_stats_parse(&stats, text, len);
	r->clock_time = stats.now_ns;
	free(text);
}

static void
begin_sweep(struct ring *r, bool all)
{
	unsigned i;

	/* A sweep that is under way goes on, up to this moment. */
	if (r->sweep == SWEEP_NONE) {
		r->sweep_no++;
		r->sweep_all = false;
		read_both_clocks(r);
	}
	r->sweep = SWEEP_RUNNING;
	r->sweep_all |= all;
	r->sweep_begin = ring_now(r);
	for (i = 0; i < r->n_cpus; i++) {
		r->cpus[i].done = r->cpus[i].fd < 0;
		r->cpus[i].n_pages = 0;
	}
}

uint64_t
ring_sweep(struct ring *r, bool all)
{
	if (r->sweep == SWEEP_NONE || all) {
		begin_sweep(r, all);
		loop_defer(r->ftrace->loop, &r->turn, turn_cb, r);
	}
	return r->sweep_no;
}

void
ring_sweep_now(struct ring *r)
{
	begin_sweep(r, true);
	loop_call_cancel(&r->turn);
	while (turn(r))
		;
	end_sweep(r);
}

void
ring_tick_cb(void *arg)
{
	ring_sweep(arg, false);
	ring_losses_look(arg);
}

void
ring_full_cb(int fd, short what, void *arg)
{
	ring_sweep(arg, false);
}
