#include "service/config/config_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "service/access/principal.h"
#include "transport/base/log.h"

/* With enable_extra_guardrails. */
#define GUARD_DURATION_MS (24u * 3600u * 1000u)
#define GUARD_BUFFERS_KB (128u * 1024u)
#define GUARD_BUFFER_UNIT_KB 4u

/* Bounds of a priority: an increment of niceness, or a level of SCHED_FIFO. */
#define NICER_MOST 20u
#define FIFO_LEAST 1u
#define FIFO_MOST 99u

#define POLICY(name)                                                          \
	PERFETTO__PROTOS__PRIORITY_BOOST_CONFIG__BOOST_POLICY__POLICY_##name
#define FIFO  POLICY(SCHED_FIFO)
#define OTHER POLICY(SCHED_OTHER)

struct guard_entry {
	TAILQ_ENTRY(guard_entry) link;
	struct principal owner;
	uint64_t at_ms;
	char name[];
};

struct guard_book {
	TAILQ_HEAD(, guard_entry) entries; /* the oldest first */
	size_t n;
};

static int
check_buffers(const Perfetto__Protos__TraceConfig *pb, char *err,
    size_t err_size)
{
	uint64_t total = 0, most = GUARD_BUFFERS_KB;
	size_t i;

	for (i = 0; i < pb->n_buffers; i++) {
		if (pb->buffers[i]->size_kb % GUARD_BUFFER_UNIT_KB != 0) {
			snprintf(err, err_size, "buffers.size_kb must be a "
			    "multiple of %u with enable_extra_guardrails, got "
			    "%u", GUARD_BUFFER_UNIT_KB,
			    pb->buffers[i]->size_kb);
			return -1;
		}
		total += pb->buffers[i]->size_kb;
	}
	if (pb->guardrail_overrides != NULL &&
	    pb->guardrail_overrides->max_tracing_buffer_size_kb > most)
		most = pb->guardrail_overrides->max_tracing_buffer_size_kb;
	if (total <= most)
		return 0;
	snprintf(err, err_size, "Requested too large trace buffers (%llu KiB > "
	    "%llu KiB, enable_extra_guardrails)", (unsigned long long)total,
	    (unsigned long long)most);
	return -1;
}

static int
check_guardrails(const Perfetto__Protos__TraceConfig *pb, char *err,
    size_t err_size)
{
	uint32_t ms = pb->duration_ms;

	if (!pb->enable_extra_guardrails)
		return 0;
	if (pb->trigger_config != NULL &&
	    pb->trigger_config->trigger_timeout_ms > ms)
		ms = pb->trigger_config->trigger_timeout_ms;
	if (ms > GUARD_DURATION_MS) {
		snprintf(err, err_size, "Requested too long trace (%u ms > %u "
		    "ms, enable_extra_guardrails)", ms, GUARD_DURATION_MS);
		return -1;
	}
	if (pb->deferred_start) {
		snprintf(err, err_size, "deferred_start is not possible with "
		    "enable_extra_guardrails: such traces are unattended");
		return -1;
	}
	return check_buffers(pb, err, err_size);
}

/* A bugreport_filename becomes the name of a file somewhere. */
static int
check_filename(const char *name, char *err, size_t err_size)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	if (name == NULL || name[strspn(name, good)] == '\0')
		return 0;
	snprintf(err, err_size, "bugreport_filename contains invalid "
	    "characters: only letters, digits, - _ . are possible");
	return -1;
}

/* Checks the priority boost; pb NULL: the config asks for none. */
static int
check_priority(const Perfetto__Protos__PriorityBoostConfig *pb, char *err,
    size_t err_size)
{
	if (pb == NULL)
		return 0;
	if (pb->policy != FIFO && pb->policy != OTHER) {
		snprintf(err, err_size, "Invalid priority boost config: the "
		    "policy must be POLICY_SCHED_OTHER or POLICY_SCHED_FIFO");
		return -1;
	}
	if (pb->policy == OTHER ? pb->priority <= NICER_MOST :
	    pb->priority >= FIFO_LEAST && pb->priority <= FIFO_MOST)
		return 0;
	snprintf(err, err_size, "Invalid priority boost config: priority must "
	    "be from %u to %u with %s, got %u", pb->policy == OTHER ? 0 :
	    FIFO_LEAST, pb->policy == OTHER ? NICER_MOST : FIFO_MOST,
	    pb->policy == OTHER ? "POLICY_SCHED_OTHER" : "POLICY_SCHED_FIFO",
	    pb->priority);
	return -1;
}

int
config_guard_check(const Perfetto__Protos__TraceConfig *pb, char *err,
    size_t err_size)
{
	if (check_guardrails(pb, err, err_size) != 0 ||
	    check_filename(pb->bugreport_filename, err, err_size) != 0)
		return -1;
	return check_priority(pb->priority_boost, err, err_size);
}

/* ---- the book of sessions that began lately ---- */

struct guard_book *
guard_book_new(void)
{
	struct guard_book *b = calloc(1, sizeof(*b));

	if (b != NULL)
		TAILQ_INIT(&b->entries);
	return b;
}

static void
drop(struct guard_book *b, struct guard_entry *e)
{
	TAILQ_REMOVE(&b->entries, e, link);
	b->n--;
	free(e);
}

void
guard_book_free(struct guard_book *b)
{
	if (b == NULL)
		return;
	while (!TAILQ_EMPTY(&b->entries))
		drop(b, TAILQ_FIRST(&b->entries));
	free(b);
}

static const char *
name_of(const Perfetto__Protos__TraceConfig *pb)
{
	return pb->unique_session_name != NULL ? pb->unique_session_name : "";
}

int
guard_book_check(struct guard_book *b,
    const Perfetto__Protos__TraceConfig *pb, const struct principal *owner,
    uint64_t now_ms, char *err, size_t err_size)
{
	const struct guard_entry *e;
	char name[256];

	if (!pb->enable_extra_guardrails)
		return 0;
	while ((e = TAILQ_FIRST(&b->entries)) != NULL &&
	    now_ms - e->at_ms >= GUARD_PAUSE_MS)
		drop(b, TAILQ_FIRST(&b->entries));
	TAILQ_FOREACH(e, &b->entries, link)
		if (strcmp(e->name, name_of(pb)) == 0 &&
		    principal_equal(&e->owner, owner))
			break;
	if (e == NULL)
		return 0;
	snprintf(err, err_size, "A trace with unique session name \"%s\" began "
	    "less than %u s ago (%llu s): enable_extra_guardrails",
	    log_escape(name, sizeof(name), e->name, strlen(e->name)),
	    GUARD_PAUSE_MS / 1000,
	    (unsigned long long)((now_ms - e->at_ms) / 1000));
	return -1;
}

void
guard_book_note(struct guard_book *b,
    const Perfetto__Protos__TraceConfig *pb, const struct principal *owner,
    uint64_t now_ms)
{
	size_t len = strlen(name_of(pb)) + 1;
	struct guard_entry *e;

	if (!pb->enable_extra_guardrails ||
	    (e = malloc(sizeof(*e) + len)) == NULL)
		return;
	e->owner = *owner;
	e->at_ms = now_ms;
	memcpy(e->name, name_of(pb), len);
	if (b->n == GUARD_BOOK_MAX)
		drop(b, TAILQ_FIRST(&b->entries));
	TAILQ_INSERT_TAIL(&b->entries, e, link);
	b->n++;
}
