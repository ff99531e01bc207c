#include <stdlib.h>
#include <string.h>

#include "service/ingest/quota_internal.h"
#include "service/model/model.h"
#include "transport/base/glob.h"
#include "transport/base/machine_word.h"
#include "transport/shm/shm.h"

/* Prefix of machine.owner where a certificate vouches for the machine. */
#define BY_CERTIFICATE "certificate "

_Static_assert(QUOTA_WRITER_BITS * QUOTA_WRITER_PAGES > SHM_MAX_WRITER_ID,
    "every writer has a bit");

/* ---- the rule that fits a machine ---- */

static bool
fits(const struct quota_setting *q, const struct machine *m)
{
	size_t n = strlen(BY_CERTIFICATE);

	if (q->machine != NULL && !machine_word_means(q->machine, m->id,
	    m->name))
		return false;
	if (q->certificate == NULL)
		return true;
	return m->owner != NULL &&
	    strncmp(m->owner, BY_CERTIFICATE, n) == 0 &&
	    glob_match(q->certificate, m->owner + n);
}

static const struct quota_setting *
find_rule(const struct service *s, const struct machine *m)
{
	size_t i;

	for (i = 0; i < s->settings->n_quotas; i++)
		if (fits(&s->settings->quotas[i], m))
			return &s->settings->quotas[i];
	return NULL;
}

static void
no_memory(struct service *s, const struct machine *m)
{
	log_limited(&s->memory_log, loop_now_ms(), LOG_LEVEL_ERROR,
	    "machine %u: no memory for its quota, it has none", m->id);
}

static void
free_machine_quota(struct machine_quota *q)
{
	fair_bucket_done(&q->bucket);
	free(q);
}

void
quota_meet(struct service *s, struct machine *m)
{
	const struct quota_setting *rule = find_rule(s, m);
	const struct allowance_setting none = { 0 };
	const struct allowance_setting *a = &none;
	struct machine_quota *q = machine_account(m)->quota;

	if (q == NULL && rule == NULL)
		return;
	if (q != NULL && q->rule == rule)
		return;
	if (q == NULL) {
		if ((q = calloc(1, sizeof(*q))) == NULL) {
			no_memory(s, m);
			return;
		}
		fair_bucket_init(&q->bucket);
	}
	machine_account(m)->quota = q;
	machine_account(m)->free_quota = free_machine_quota;
	q->rule = rule;
	if (rule != NULL)
		a = &rule->each_machine;
	if (fair_bucket_set(&q->bucket, s->loop, a->bytes_per_second,
	    a->burst) != 0)
		no_memory(s, m);
}

uint32_t
quota_guaranteed_percent(const struct service *s, const struct machine *m)
{
	const struct quota_setting *rule = find_rule(s, m);

	return rule != NULL ? rule->guaranteed_percent :
	    QUOTA_GUARANTEED_PERCENT;
}

static const struct quota_setting *
rule_of(const struct machine_account *a)
{
	return a->quota != NULL ? a->quota->rule : NULL;
}

/* ---- producers, connections, data sources ---- */

const char *
quota_admit_connection(struct machine *m, uint32_t replaced)
{
	struct machine_account *a = machine_account(m);
	const struct quota_setting *rule = rule_of(a);
	size_t n;

	if (rule == NULL || rule->each_machine.max_connections == 0)
		return NULL;
	/*
	 * The host has no connections of its own: only producers speak for it.
	 */
	n = m->id == 0 ? a->n_producers : a->n_connections;
	if (n < (size_t)rule->each_machine.max_connections + replaced)
		return NULL;
	a->quota->refused_connections++;
	return "too many connections of this machine: "
	       "quota.each_machine.max_connections is reached";
}

/* The lower of two limits; 0 is no limit. */
static uint32_t
fewer(uint32_t a, uint32_t b)
{
	if (a == 0 || b == 0)
		return a + b;
	return a < b ? a : b;
}

/* Sequences that the producer may have; 0: not counted. */
static uint32_t
max_sequences(const struct producer *p, const struct quota_setting *rule)
{
	uint32_t most = p->service->settings->limits.max_writers_per_producer;
	const uint32_t all = SHM_MAX_WRITER_ID;

	if (most >= all)
		most = 0;
	if (rule == NULL)
		return most;
	most = fewer(most, rule->each_producer.max_sequences);
	return most == 0 && rule->each_machine.max_sequences != 0 ? all : most;
}

const char *
quota_admit_producer(struct producer *p)
{
	struct service *s = p->service;
	struct machine *m = p->machine;
	struct machine_account *a = machine_account(m);
	const struct quota_setting *rule;
	struct producer_quota *q;
	uint32_t sequences;
	const char *why;

	quota_meet(s, m);
	rule = rule_of(a);
	if (rule != NULL && rule->each_machine.max_producers != 0 &&
	    a->n_producers >= rule->each_machine.max_producers) {
		a->quota->refused_producers++;
		return "too many producers of this machine: "
		       "quota.each_machine.max_producers is reached";
	}
	/* A link's producer comes over the link's connection. */
	if (!p->linked && (why = quota_admit_connection(m, 0)) != NULL)
		return why;
	sequences = max_sequences(p, rule);
	if (rule == NULL && sequences == 0)
		return NULL;
	if ((q = calloc(1, sizeof(*q))) == NULL)
		return "out of memory";
	fair_bucket_init(&q->bucket);
	q->own.wake = q->shared.wake = p->at_gate.wake;
	q->own.arg = q->shared.arg = p->at_gate.arg;
	q->machine = a->quota;
	q->max_sequences = sequences;
	if (rule != NULL && fair_bucket_set(&q->bucket, s->loop,
	    rule->each_producer.bytes_per_second,
	    rule->each_producer.burst) != 0) {
		free(q);
		return "out of memory";
	}
	p->quota = q;
	return NULL;
}

void
quota_producer_gone(struct producer *p)
{
	struct producer_quota *q = p->quota;
	size_t i;

	if (q == NULL)
		return;
	if (q->machine != NULL)
		q->machine->n_sequences -= q->n_sequences;
	fair_queue_leave(&q->own);
	fair_queue_leave(&q->shared);
	fair_bucket_done(&q->bucket);
	for (i = 0; i < QUOTA_WRITER_PAGES; i++)
		free(q->writers[i]);
	free(q->dropped);
	free(q);
	p->quota = NULL;
}

const char *
quota_admit_data_source(struct producer *p)
{
	struct machine_account *a = machine_account(p->machine);
	const struct quota_setting *rule = rule_of(a);
	const char *why = NULL;

	if (rule == NULL)
		return NULL;
	if (rule->each_producer.max_data_sources != 0 &&
	    p->n_data_sources >= rule->each_producer.max_data_sources)
		why = "too many data sources of this producer: "
		      "quota.each_producer.max_data_sources is reached";
	else if (rule->each_machine.max_data_sources != 0 &&
	    a->n_data_sources >= rule->each_machine.max_data_sources)
		why = "too many data sources of this machine: "
		      "quota.each_machine.max_data_sources is reached";
	if (why != NULL)
		a->quota->refused_data_sources++;
	return why;
}

/* ---- sequences ---- */

/* The word with the writer's bit; NULL: no memory, or (make false) no word. */
static uint64_t *
word_of(struct producer_quota *q, uint32_t writer, bool make)
{
	uint64_t **page;

	if (writer > SHM_MAX_WRITER_ID)
		return NULL;
	page = &q->writers[writer / QUOTA_WRITER_BITS];
	if (*page == NULL && make)
		*page = calloc(QUOTA_WRITER_BITS / 64, sizeof(**page));
	if (*page == NULL)
		return NULL;
	return *page + writer % QUOTA_WRITER_BITS / 64;
}

static bool
refuse_sequence(struct producer *p, const char *limit)
{
	if (p->quota->machine != NULL)
		p->quota->machine->refused_sequences++;
	p->service->counters.sequences_refused++;
	log_limited(&p->service->refused_log, loop_now_ms(), LOG_LEVEL_WARN,
	    "machine %u: a sequence of producer %u refused: %s is reached",
	    p->machine->id, p->id, limit);
	return false;
}

static bool
add_sequence(struct producer *p, uint64_t *word, uint64_t bit)
{
	struct producer_quota *q = p->quota;
	const struct quota_setting *rule = q->machine != NULL ?
	    q->machine->rule : NULL;
	uint32_t most = rule != NULL ? rule->each_machine.max_sequences : 0;

	if (q->n_sequences >= q->max_sequences)
		return refuse_sequence(p, rule != NULL &&
		    rule->each_producer.max_sequences == q->max_sequences ?
		    "quota.each_producer.max_sequences" :
		    "limits.max_writers_per_producer");
	if (most != 0 && q->machine->n_sequences >= most)
		return refuse_sequence(p, "quota.each_machine.max_sequences");
	*word |= bit;
	q->n_sequences++;
	if (q->machine != NULL)
		q->machine->n_sequences++;
	return true;
}

bool
quota_take_sequence(struct producer *p, uint32_t writer)
{
	uint64_t bit = UINT64_C(1) << (writer % 64), *word;

	if (p->quota->max_sequences == 0)
		return true;
	if ((word = word_of(p->quota, writer, true)) == NULL)
		return false;
	return (*word & bit) != 0 || add_sequence(p, word, bit);
}

void
quota_return_sequence(struct producer *p, uint32_t writer)
{
	uint64_t bit = UINT64_C(1) << (writer % 64);
	struct producer_quota *q = p->quota;
	uint64_t *word = word_of(q, writer, false);

	if (word == NULL || (*word & bit) == 0)
		return;
	*word &= ~bit;
	q->n_sequences--;
	if (q->machine != NULL)
		q->machine->n_sequences--;
}

/* ---- for people ---- */

static void
put_amount(struct quota_counts *out, const struct quota_amount *a)
{
	out->held_times = a->held_times;
	out->held_ms = a->held_ms;
	out->dropped_chunks = a->dropped_chunks;
	out->dropped_packets = a->dropped_packets;
	out->dropped_bytes = a->dropped_bytes;
}

void
quota_counts_of_machine(const struct machine *m, struct quota_counts *out)
{
	const struct machine_account *a = m->shared != NULL ? m->shared :
	    &m->own;
	const struct machine_quota *q = a->quota;

	*out = (struct quota_counts){ .limited = q != NULL };
	if (q == NULL)
		return;
	put_amount(out, &q->amount);
	out->bytes_per_second = q->bucket.budget.bytes_per_second;
	out->sequences = q->n_sequences;
	out->refused_producers = q->refused_producers;
	out->refused_connections = q->refused_connections;
	out->refused_data_sources = q->refused_data_sources;
	out->refused_sequences = q->refused_sequences;
}

void
quota_counts_of_producer(const struct producer *p, struct quota_counts *out)
{
	const struct producer_quota *q = p->quota;

	*out = (struct quota_counts){ .limited = q != NULL };
	if (q == NULL)
		return;
	put_amount(out, &q->amount);
	if (q->held)
		out->held_ms += loop_now_ms() - q->held_since_ms;
	out->bytes_per_second = q->bucket.budget.bytes_per_second;
	out->sequences = q->n_sequences;
}
