#include "transport/segment/segment_kept.h"

#include <stdlib.h>

#include "protos/fields.h"
#include "transport/packet/service_packets.h"
#include "transport/segment/segment_look.h"
#include "transport/segment/segment_packets.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

void
segment_kept_init(struct segment_kept *k)
{
	memset(k, 0, sizeof(*k));
	TAILQ_INIT(&k->all);
}

void
segment_kept_done(struct segment_kept *k)
{
	hash_map_done(&k->by_key);
}

static bool
is_bounded(const struct kept_packet *p)
{
	return p->sequence != SERVICE_PACKETS_SEQUENCE;
}

/* The numbers of a message's fields 1 and 2. */
static uint64_t
first_numbers(const struct segment_look *of)
{
	struct pb_reader r;
	struct pb_field f;
	uint64_t number[2] = { 0, 0 };

	PB_FOREACH(&f, &r, of->content, of->content_len)
		if (f.wire == PB_VARINT && (f.number == 1 || f.number == 2))
			number[f.number - 1] = f.value;
	return number[0] ^ number[1] << 32;
}

/*
 * A sequence describes many tracks, processes and threads, and may have several
 * schemas of extensions.
 */
static uint64_t
which(const struct segment_look *of)
{
	switch (of->payload) {
	case TracePacket_track_descriptor:  /* uuid; 2 is a name */
	case TracePacket_process_descriptor: /* pid; 2 is a command line */
	case TracePacket_thread_descriptor: /* pid, tid */
		return first_numbers(of);
	case TracePacket_extension_descriptor:
		return hash_bytes(of->content, of->content_len);
	default:
		return 0;
	}
}

static uint64_t
key_hash(const struct kept_packet *p)
{
	uint64_t a = hash_numbers(p->machine, p->sequence);

	return hash_numbers(a, hash_numbers(p->payload, p->which));
}

static struct kept_packet *
find(const struct segment_kept *k, const struct kept_packet *key)
{
	struct kept_packet *p;

	HASH_MAP_FOREACH_OF(p, &k->by_key, key_hash(key), link)
		if (p->machine == key->machine &&
		    p->sequence == key->sequence &&
		    p->payload == key->payload && p->which == key->which)
			return p;
	return NULL;
}

/* Gives p the writer's bytes, and a place in the order of age. */
static void
fill(struct segment_kept *k, struct kept_packet *p, struct pb_writer *w)
{
	p->bytes = realloc(w->data, w->len);
	if (p->bytes == NULL)
		p->bytes = w->data;
	p->len = w->len;
	if (!is_bounded(p))
		return;
	k->bytes += p->len + sizeof(*p);
	TAILQ_INSERT_TAIL(&k->all, p, in_all);
}

static void
empty(struct segment_kept *k, struct kept_packet *p)
{
	if (is_bounded(p)) {
		TAILQ_REMOVE(&k->all, p, in_all);
		k->bytes -= p->len + sizeof(*p);
	}
	free(p->bytes);
	p->bytes = NULL;
}

void
segment_kept_drop(struct segment_kept *k, struct kept_packet *p)
{
	empty(k, p);
	hash_map_remove(&k->by_key, &p->link);
	TAILQ_REMOVE(p->list, p, in_list);
	free(p);
}

void
segment_kept_drop_list(struct segment_kept *k, struct kept_list *list)
{
	struct kept_packet *p;

	while ((p = TAILQ_FIRST(list)) != NULL)
		segment_kept_drop(k, p);
}

static struct kept_packet *
add(struct segment_kept *k, struct kept_list *list,
    const struct kept_packet *key)
{
	struct kept_packet *p = malloc(sizeof(*p));

	if (p == NULL)
		return NULL;
	*p = *key;
	p->list = list;
	TAILQ_INSERT_TAIL(list, p, in_list);
	hash_map_put(&k->by_key, &p->link, key_hash(p));
	return p;
}

static void
trim(struct segment_kept *k)
{
	while (k->bytes > SEGMENT_KEPT_ALL) {
		segment_kept_drop(k, TAILQ_FIRST(&k->all));
		k->given_up++;
	}
}

void
segment_kept_put(struct segment_kept *k, struct kept_list *list,
    const struct segment_look *of, uint32_t number)
{
	struct kept_packet key = {
		.machine = of->machine,
		.sequence = of->sequence,
		.payload = of->payload,
		.which = which(of),
		.if_stateless = of->kind == SEGMENT_ONCE_IF_STATELESS,
	};
	struct kept_packet *p = find(k, &key);
	struct pb_writer w;

	pb_writer_init(&w);
	if (is_bounded(&key) && of->len > SEGMENT_KEPT_EACH)
		w.failed = true;
	else
		segment_packets_repeated(&w, of);
	if (p != NULL && w.failed) {
		segment_kept_drop(k, p);
		p = NULL;
	} else if (p != NULL) {
		empty(k, p);
	} else if (!w.failed) {
		p = add(k, list, &key);
	}
	if (p == NULL) {
		pb_writer_done(&w);
		k->given_up++;
		return;
	}
	p->number = number;
	fill(k, p, &w);
	trim(k);
}
