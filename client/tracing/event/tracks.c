/* Numbers of tracks. */
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <tributary/track_event.h>
#include <unistd.h>

#include "client/tracing/event/event_state.h"

/* Random, so that processes, also of other machines, do not share tracks. */
static uint64_t process_uuid;
static struct tributary_track process_track = {
	.kind = TRIBUTARY_TRACK_OF_PROCESS,
};
static __thread uint64_t thread_uuid;

static uint64_t
mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0xff51afd7ed558ccdu;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 29;
}

static uint64_t
new_uuid(void)
{
	struct timespec ts;
	uint64_t v;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != sizeof(v)) {
		clock_gettime(CLOCK_BOOTTIME, &ts);
		v = mix((uint64_t)getpid(), (uint64_t)ts.tv_sec * 1000000000u +
		    (uint64_t)ts.tv_nsec);
	}
	return v | 1;
}

uint64_t
tributary_process_uuid(void)
{
	uint64_t mine, seen = __atomic_load_n(&process_uuid, __ATOMIC_RELAXED);

	if (seen != 0)
		return seen;
	mine = new_uuid();
	if (!__atomic_compare_exchange_n(&process_uuid, &seen, mine, false,
	    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		mine = seen;
	return mine;
}

uint64_t
event_thread_uuid(void)
{
	if (thread_uuid == 0)
		thread_uuid = mix(tributary_process_uuid(),
		    (uint64_t)syscall(SYS_gettid)) | 1;
	return thread_uuid;
}

uint64_t
event_thread_time_uuid(void)
{
	return mix(event_thread_uuid(), 1) | 1;
}

void
event_tracks_after_fork(void)
{
	process_uuid = new_uuid();
	process_track.uuid = process_uuid;
	thread_uuid = 0;
}

struct tributary_track
tributary_thread_track(void)
{
	struct tributary_track t = { .kind = TRIBUTARY_TRACK_OF_THREAD };

	t.uuid = event_thread_uuid();
	t.tid = (int32_t)syscall(SYS_gettid);
	return t;
}

const struct tributary_track *
tributary_process_track(void)
{
	__atomic_store_n(&process_track.uuid, tributary_process_uuid(),
	    __ATOMIC_RELAXED);
	return &process_track;
}

static uint64_t
hash_name(uint64_t h, const char *name)
{
	for (; name != NULL && *name != '\0'; name++)
		h = (h ^ (uint8_t)*name) * 0x100000001b3u;
	return h;
}

struct tributary_track
tributary_track(const char *name, uint64_t id,
    const struct tributary_track *parent)
{
	struct tributary_track t = { .name = name, .parent = parent };

	t.uuid = mix(mix(hash_name(0xcbf29ce484222325u, name), id),
	    parent != NULL ? parent->uuid : 0) | 1;
	return t;
}

struct tributary_track
tributary_counter_track(const char *name, enum tributary_unit unit,
    const struct tributary_track *parent)
{
	struct tributary_track t = tributary_track(name, 0, parent);

	t.uuid = mix(t.uuid, TRIBUTARY_TRACK_COUNTER) | 1;
	t.kind = TRIBUTARY_TRACK_COUNTER;
	t.unit = (uint8_t)unit;
	return t;
}
