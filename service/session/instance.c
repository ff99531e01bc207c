#include "service/session/instance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/config/name_filter.h"
#include "service/ingest/former_ids.h"
#include "service/ingest/quota.h"
#include "service/ingest/writers.h"
#include "service/session/lockdown.h"
#include "service/session/producer.h"
#include "service/session/session.h"
#include "service/session/session_internal.h"
#include "service/session/session_vms.h"
#include "service/session/session_warnings.h"
#include "transport/base/log.h"
#include "transport/base/machine_word.h"
#include "transport/buffer/trace_buffer.h"
#include "transport/wire/pb_writer.h"

static bool
machine_wanted(const struct session *s, const struct config_data_source *want,
    const struct producer *p)
{
	size_t i;

	if (want->n_machines == 0)
		return p->machine->id == 0 ||
		    s->config->pb->trace_all_machines;
	for (i = 0; i < want->n_machines; i++)
		if (machine_word_means(want->machines[i], p->machine->id,
		    producer_machine_name(p)))
			return true;
	return false;
}

static bool
producer_wanted(const struct session *s, const struct config_data_source *want,
    const struct producer *p)
{
	return lockdown_permits(s->service, p->own) &&
	    machine_wanted(s, want, p) &&
	    name_filter_test(want->producers, p->name);
}

bool
instance_matches(const struct session *s,
    const struct config_data_source *want, const struct data_source *ds)
{
	return strcmp(want->name, ds->descriptor.name) == 0 &&
	    producer_wanted(s, want, ds->producer);
}

bool
instance_may_write(const struct session *s, uint32_t buffer,
    const struct producer *p)
{
	const struct config *c = s->config;
	size_t n;

	for (n = 0; n < c->n_data_sources; n++)
		if (c->data_sources[n].buffer == buffer &&
		    producer_wanted(s, &c->data_sources[n], p))
			return true;
	return false;
}

static void
set_state(struct ds_instance *i, enum instance_state state)
{
	if (i->state == state)
		return;
	i->session->n_in_state[i->state]--;
	i->session->n_in_state[state]++;
	i->state = state;
	session_instance_changed(i->session, i);
}

/*
 * The DataSourceConfig as producers get it: the same for all of them, so that
 * it is encoded and kept once for however many there are.
 */
static int
config_of(struct session *s, const struct config_data_source *want,
    const uint8_t **config, size_t *len)
{
	if (config_keep_for_producers(s->config, want,
	    s->buffers[want->buffer].id, s->id) != 0)
		return -1;
	*config = want->for_producers;
	*len = want->for_producers_len;
	return 0;
}

/* Warns that its data will be missing; the consumer hears it, too. */
static void
warn_of(struct session *s, const struct producer *p, int error)
{
	char name[64], text[256];

	snprintf(text, sizeof(text), "producer %u (%s) cannot take part: the "
	    "collector is out of %s", p->id,
	    log_escape(name, sizeof(name), p->name, strlen(p->name)),
	    error == EMFILE || error == ENFILE ?
	    "file descriptors (LimitNOFILE=, ulimit -n)" : "memory");
	session_warn(s, text);
}

/* Gives it an id: one that it has from a former collector, or a new one. */
static void
name(struct ds_instance *i, uint16_t buffer)
{
	struct session *s = i->session;
	struct former_instance f;

	if (i->producer->former != NULL && former_ids_take_instance(
	    i->producer, buffer, (uint32_t)(i->want - s->config->data_sources),
	    &f)) {
		i->id = f.id;
		i->before = f.acked ? BEFORE_ACKED :
		    f.runs ? BEFORE_STARTED : BEFORE_SET_UP;
	} else {
		i->id = ++s->service->last_instance_id;
	}
}

struct ds_instance *
instance_new(struct session *s, const struct config_data_source *want,
    struct data_source *ds)
{
	struct producer *p = ds->producer;
	struct session_buffer *b = &s->buffers[want->buffer];
	struct ds_instance *i = NULL;
	const uint8_t *config;
	size_t len;
	uint32_t shm_kb, page_kb;

	if (p->n_instances >= INSTANCES_PER_PRODUCER) {
		s->service->counters.instances_refused++;
		return NULL;
	}
	errno = 0;
	config_shm_sizes(s->config, p->name, &shm_kb, &page_kb);
	if (config_of(s, want, &config, &len) != 0 ||
	    (i = calloc(1, sizeof(*i))) == NULL ||
	    writers_allow(p, b->id) != 0 ||
	    !trace_buffer_guarantee(b->tb, machine_account(p->machine)->share,
		quota_guaranteed_percent(s->service, p->machine)) ||
	    producer_set_up_tracing(p, shm_kb, page_kb) != 0)
		goto fail;
	i->session = s;
	i->producer = p;
	i->want = want;
	i->source = ds;
	i->name = want->name;
	name(i, b->id);
	i->will_notify_on_start = ds->descriptor.will_notify_on_start;
	i->will_notify_on_stop = ds->descriptor.will_notify_on_stop;
	i->handles_incremental_state_clear =
	    ds->descriptor.handles_incremental_state_clear;
	i->no_flush = ds->descriptor.no_flush;
	i->state = INSTANCE_CONFIGURED;
	TAILQ_INSERT_TAIL(&s->instances, i, of_session);
	TAILQ_INSERT_TAIL(&p->instances, i, of_producer);
	s->n_instances++;
	s->n_in_state[i->state]++;
	p->n_instances++;
	session_vms_add(s, want, ds);
	if (i->before == BEFORE_NOTHING)
		p->ops->setup_data_source(p->port, i->id, config, len);
	session_instance_made(s, i);
	return i;

fail:
	warn_of(s, p, errno);
	s->service->counters.instances_refused++;
	free(i);
	return NULL;
}

void
instance_free(struct ds_instance *i)
{
	TAILQ_REMOVE(&i->session->instances, i, of_session);
	TAILQ_REMOVE(&i->producer->instances, i, of_producer);
	i->session->n_instances--;
	i->session->n_in_state[i->state]--;
	i->producer->n_instances--;
	free(i);
}

void
instance_start(struct ds_instance *i)
{
	const uint8_t *config;
	size_t len;

	if (i->state != INSTANCE_CONFIGURED)
		return;
	/* Cannot fail: the config was kept when the instance was set up. */
	if (config_of(i->session, i->want, &config, &len) != 0)
		return;
	if (i->before < BEFORE_STARTED)
		i->producer->ops->start_data_source(i->producer->port, i->id,
		    config, len);
	set_state(i, i->will_notify_on_start && i->before != BEFORE_ACKED ?
	    INSTANCE_STARTING : INSTANCE_STARTED);
}

void
instance_stop(struct ds_instance *i)
{
	switch (i->state) {
	case INSTANCE_STOPPING:
	case INSTANCE_STOPPED:
		return;
	case INSTANCE_CONFIGURED:
	case INSTANCE_STARTING:
	case INSTANCE_STARTED:
		break;
	}
	i->producer->ops->stop_data_source(i->producer->port, i->id);
	set_state(i, i->will_notify_on_stop ? INSTANCE_STOPPING :
	    INSTANCE_STOPPED);
}

void
instance_ack_started(struct ds_instance *i)
{
	if (i->state == INSTANCE_STARTING)
		set_state(i, INSTANCE_STARTED);
}

void
instance_ack_stopped(struct ds_instance *i)
{
	/* A source may also stop by itself, unasked. */
	set_state(i, INSTANCE_STOPPED);
}

void
instance_give_up(struct ds_instance *i)
{
	if (i->state == INSTANCE_STOPPING)
		set_state(i, INSTANCE_STOPPED);
}

void
instance_producer_gone(struct ds_instance *i)
{
	struct session *s = i->session;
	bool holds_end = s->holds_end;

	/*
	 * The consumer is told before the instance is freed, as it gets the
	 * names.  The session must not end in between: that frees its
	 * instances.
	 */
	s->holds_end = true;
	set_state(i, INSTANCE_STOPPED);
	s->holds_end = holds_end;
	instance_free(i);
	session_instance_gone(s);
}

bool
instance_clear_state(const struct session *s, struct producer *p)
{
	struct ds_instance *i;
	uint64_t ids[64];
	bool any = false;
	size_t n = 0;

	TAILQ_FOREACH(i, &p->instances, of_producer) {
		if (i->session != s || !i->handles_incremental_state_clear ||
		    (i->state != INSTANCE_STARTED &&
		    i->state != INSTANCE_STARTING))
			continue;
		any = true;
		ids[n++] = i->id;
		if (n == sizeof(ids) / sizeof(ids[0])) {
			p->ops->clear_incremental_state(p->port, ids, n);
			n = 0;
		}
	}
	if (n > 0)
		p->ops->clear_incremental_state(p->port, ids, n);
	return any;
}

bool
instance_each(const struct session *s, struct producer *p,
    void (*act)(struct ds_instance *i))
{
	struct ds_instance *i;
	bool any = false;

	TAILQ_FOREACH(i, &p->instances, of_producer) {
		if (i->session != s)
			continue;
		any = true;
		act(i);
	}
	return any;
}
