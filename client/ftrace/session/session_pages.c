/* Pages of the kernel's into a session's packets. */
#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/event_plan.h"
#include "client/ftrace/page/page_reader.h"
#include "client/ftrace/session/ftrace_internal.h"
#include "client/tracing/packet/packet.h"

/* FtraceParseStatus of an event whose fields lie outside of its record. */
enum { INVALID_EVENT = 17 };

/*
 * Length from which on the next page is another packet's.  A packet is put
 * together in allocated memory: beyond 128 KiB, malloc() would map it anew for
 * each one, and clearing its pages costs more than the events.
 */
#define PACKET_BYTES (16u * 1024u)

/* The pages of a batch that are not yet in a packet. */
struct batch {
	struct ftrace_session *session;
	unsigned cpu;
	const uint8_t *page;
	size_t n;
};

/* As FtraceClock. */
static uint32_t
clock_number(enum ring_clock clock)
{
	switch (clock) {
	case RING_BOOT:
		return 0;
	case RING_UNKNOWN:
		return 1;
	case RING_GLOBAL:
		return 2;
	case RING_LOCAL:
		return 3;
	case RING_MONO_RAW:
		return 4;
	}
	return 1;
}

/* Without memory the thread keeps the name that was told. */
static void
note_changed(struct ftrace_session *s, const struct page_record *record,
    uint16_t at)
{
	int32_t *larger;
	size_t room;

	if (record->len < (size_t)at + sizeof(*s->changed))
		return;
	if (s->n_changed == s->changed_room) {
		room = s->changed_room == 0 ? 64 : 2 * s->changed_room;
		larger = realloc(s->changed, room * sizeof(*larger));
		if (larger == NULL)
			return;
		s->changed = larger;
		s->changed_room = room;
	}
	memcpy(&s->changed[s->n_changed++], record->data + at,
	    sizeof(*s->changed));
}

/*
 * The kernel filters threads where all sessions of a buffer ask for some; as it
 * does, a switch or wakeup is of the thread that comes next, too.
 */
static bool
is_of_threads(const struct ftrace_session *s, const struct event_plan *plan,
    const struct page_record *record)
{
	const struct ftrace_config *c = s->config;
	int32_t pid = 0, next;
	size_t i;

	if (record->len < plan->size)
		return true; /* a fault, to be told */
	memcpy(&pid, record->data + plan->pid_offset, sizeof(pid));
	next = pid;
	if (plan->compact != EVENT_PLAN_PLAIN)
		memcpy(&next, record->data + plan->at.pid, sizeof(next));
	for (i = 0; i < c->n_tids; i++) {
		if (c->tids[i] == (uint32_t)pid || c->tids[i] == (uint32_t)next)
			return true;
	}
	return false;
}

static void
take_records(struct ftrace_session *s, struct page_reader *reader)
{
	struct ftrace_bundle *bundle = &s->bundle;
	const struct session_event *event;
	struct page_record record;
	uint16_t id;

	while (page_reader_next(reader, &record)) {
		id = page_record_id(&record);
		if (id >= s->n_events)
			continue;
		event = &s->events[id];
		if (event->plan == NULL || UNLIKELY(record.time < s->begin))
			continue;
		if (UNLIKELY(s->config->n_tids > 0) &&
		    !is_of_threads(s, event->plan, &record))
			continue;
		if (UNLIKELY(ftrace_bundle_add(bundle, event->plan, record.time,
		    record.data, record.len) == EVENT_BROKEN))
			s->faults |= 1u << INVALID_EVENT;
		if (UNLIKELY(event->changed_at != 0))
			note_changed(s, &record, event->changed_at);
	}
	if (UNLIKELY(reader->fault != PAGE_SOUND)) {
		s->faults |= 1u << reader->fault;
		ftrace_bundle_error(bundle, reader->time,
		    (uint32_t)reader->fault);
	}
}

/*
 * One bundle: pages up to one before which the kernel lost events, or until it
 * is full or long.
 */
static void
fill(struct tributary_packet *packet, void *arg)
{
	struct batch *b = arg;
	struct ftrace_session *s = b->session;
	const struct page_layout *layout = &s->ftrace->layout;
	struct ftrace_bundle_head head = {
		.cpu = b->cpu,
		.previous_end = s->ends[b->cpu],
		.clock = clock_number(s->ring->clock),
		.clock_time = s->ring->clock_time,
		.boot_time = s->ring->boot_time,
	};
	struct page_reader reader;
	bool first = true, sound;

	for (; b->n > 0; b->n--, b->page += layout->page_size) {
		sound = page_reader_init(&reader, b->page, layout->page_size,
		    layout);
		if (first) {
			head.lost = reader.lost;
			ftrace_bundle_begin(&s->bundle, packet, &head);
		} else if (reader.lost || ftrace_bundle_is_full(&s->bundle) ||
		    packet_len(packet) >= PACKET_BYTES) {
			break;
		}
		first = false;
		if (sound) {
			take_records(s, &reader);
			continue;
		}
		s->faults |= 1u << reader.fault;
		ftrace_bundle_error(&s->bundle, reader.time,
		    (uint32_t)reader.fault);
	}
	ftrace_bundle_end(&s->bundle);
	if (s->bundle.n_events > 0)
		s->ends[b->cpu] = s->bundle.end;
	/* Events of other sessions only. */
	if (s->bundle.n_events == 0 && s->bundle.n_errors == 0 && !head.lost)
		packet->at = packet->data;
}

void
session_take_pages(struct ftrace_session *s, unsigned cpu,
    const uint8_t *pages, size_t n)
{
	struct batch b = { s, cpu, pages, n };
	size_t before;

	if (s->state != SESSION_STARTED)
		return;
	while (b.n > 0) {
		before = b.n;
		s->out.write(s->out.arg, fill, &b);
		/* A writer that has gone away calls nothing. */
		if (b.n == before)
			break;
	}
}

void
session_take_fault(struct ftrace_session *s, unsigned status)
{
	if (s->state == SESSION_STARTED)
		s->faults |= 1u << status;
}

void
session_tell_threads(struct ftrace_session *s)
{
	if (s->out.threads != NULL && s->n_changed > 0)
		s->out.threads(s->out.arg, s->changed, s->n_changed, true);
	if (s->out.threads != NULL && s->threads.n > 0)
		s->out.threads(s->out.arg, s->threads.pids, s->threads.n,
		    false);
	s->n_changed = 0;
	pid_notes_take(&s->threads);
}
