#include <stdlib.h>

#include "transport/segment/segment_look.h"
#include "transport/segment/segment_state.h"

struct split_machine *
splitter_find_machine(struct segment_splitter *s, uint32_t id)
{
	struct split_machine *m;

	if (!s->by_machine || id == 0)
		return &s->host;
	HASH_MAP_FOREACH_OF(m, &s->machines, hash_number(id), link)
		if (m->id == id)
			return m;
	return NULL;
}

struct split_machine *
splitter_machine(struct segment_splitter *s, uint32_t id)
{
	struct split_machine *m = splitter_find_machine(s, id);

	if (m != NULL)
		return m;
	if (s->machines.n >= SEGMENT_MACHINES_MAX)
		return &s->host;
	if ((m = calloc(1, sizeof(*m))) == NULL) {
		splitter_fail(s, SEGMENT_NO_MEMORY);
		return &s->host;
	}
	m->id = id;
	TAILQ_INIT(&m->kept);
	hash_map_put(&s->machines, &m->link, hash_number(id));
	return m;
}

static void
machine_free(struct segment_splitter *s, struct split_machine *m)
{
	segment_kept_drop_list(&s->kept, &m->kept);
	hash_map_remove(&s->machines, &m->link);
	free(m->name);
	free(m);
}

struct split_sequence *
splitter_find_sequence(struct segment_splitter *s, uint32_t id)
{
	struct split_sequence *q;

	HASH_MAP_FOREACH_OF(q, &s->sequences, hash_number(id), link)
		if (q->id == id)
			return q;
	return NULL;
}

struct split_sequence *
splitter_sequence(struct segment_splitter *s, const struct segment_look *k)
{
	struct split_sequence *q = s->last_sequence;

	if (LIKELY(q != NULL && q->id == k->sequence))
		return q;
	if (k->sequence == 0)
		return NULL;
	q = splitter_find_sequence(s, k->sequence);
	if (UNLIKELY(q == NULL)) {
		if (s->sequences.n >= SEGMENT_SEQUENCES_MAX ||
		    (q = calloc(1, sizeof(*q))) == NULL)
			return NULL;
		q->id = k->sequence;
		q->machine = k->machine;
		hash_map_put(&s->sequences, &q->link, hash_number(q->id));
	}
	s->last_sequence = q;
	return q;
}

void
splitter_forget(struct segment_splitter *s, uint32_t number)
{
	struct split_sequence *q;
	struct split_machine *m;
	struct hash_cursor at;

	s->last_sequence = NULL;
	HASH_MAP_FOREACH(q, &s->sequences, &at, link) {
		if (q->seen < number) {
			hash_map_remove(&s->sequences, &q->link);
			free(q);
		}
	}
	HASH_MAP_FOREACH(m, &s->machines, &at, link)
		if (m->seen < number && m->open[s->newest] == NULL)
			machine_free(s, m);
}

void
splitter_tables_done(struct segment_splitter *s)
{
	struct split_sequence *q;
	struct split_machine *m;
	struct hash_cursor at;

	HASH_MAP_FOREACH(q, &s->sequences, &at, link) {
		hash_map_remove(&s->sequences, &q->link);
		free(q);
	}
	hash_map_done(&s->sequences);
	HASH_MAP_FOREACH(m, &s->machines, &at, link)
		machine_free(s, m);
	hash_map_done(&s->machines);
	segment_kept_drop_list(&s->kept, &s->host.kept);
	free(s->host.name);
}
