#include "relay/producers/producers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/utf8.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/producers/shm_keeper.h"
#include "relay/settings/settings.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

static bool
admit(struct rpc_conn *c, const struct peer *p, void *arg, char *why)
{
	struct producers *ps = arg;

	if (ps->n_connections < ps->settings->limits.max_producers) {
		ps->n_connections++;
		rpc_conn_set_mark(c, ps);
		return true;
	}
	snprintf(why, RPC_WHY_MAX, "limits.max_producers is reached");
	return false;
}

static void
admitted_gone(struct rpc_conn *c, void *arg)
{
	struct producers *ps = arg;

	ps->n_connections -= rpc_conn_mark(c) != NULL;
}

struct producers *
producers_new(const struct producers_setup *setup, char *err, size_t err_size)
{
	struct producers *ps;

	if ((ps = calloc(1, sizeof(*ps))) == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	ps->loop = setup->loop;
	ps->settings = setup->settings;
	ps->state_dirfd = setup->state_dirfd;
	ps->up = setup->upward;
	ps->new_channel = setup->new_channel;
	ps->channel_place = setup->channel_place;
	ps->has_arrived = setup->has_arrived;
	STAILQ_INIT(&ps->formers);
	ps->channel_arg = setup->channel_arg;
	ps->flush_patience_ms = LOCAL_FLUSH_PATIENCE_MS;
	ps->recover_again_ms = RECOVER_AGAIN_MS;
	TAILQ_INIT(&ps->locals);
	TAILQ_INIT(&ps->talkers);
	TAILQ_INIT(&ps->orphans);
	local_port_init(&ps->service, ps);
	ps->guard = (struct rpc_guard){ .admit = admit, .gone = admitted_gone,
	    .arg = ps };
	return ps;
}

void
producers_free(struct producers *ps)
{
	struct local *l;

	if (ps == NULL)
		return;
	/* Producers that wait for room, which does not come any more. */
	while ((l = TAILQ_FIRST(&ps->locals)) != NULL)
		local_free(l);
	talkers_free(ps);
	orphans_forget(ps);
	formers_forget(ps);
	shm_keeper_close(ps->keeper);
	loop_cancel(ps->loop, ps);
	free(ps);
}

void
producers_hold(struct producers *ps)
{
	ps->holding = true;
}

void
producers_let_go(struct producers *ps)
{
	struct local *l, *next;

	ps->holding = false;
	TAILQ_FOREACH_SAFE(l, &ps->locals, link, next)
		if (l->state == LOCAL_ENDED)
			local_settle(l);
}

const struct rpc_service *
producers_service(struct producers *ps)
{
	return &ps->service;
}

const struct rpc_guard *
producers_guard(struct producers *ps)
{
	return &ps->guard;
}

/* ---- from upward ---- */

static struct local *
find(struct producers *ps, uint32_t channel)
{
	struct local *l;

	TAILQ_FOREACH(l, &ps->locals, link)
		if (l->channel == channel)
			return l;
	return NULL;
}

void
producers_announce(struct producers *ps, uint32_t channel)
{
	struct local *l, *next;

	if (channel == 0) {
		ps->open = true;
		ps->away = false;
	}
	TAILQ_FOREACH_SAFE(l, &ps->locals, link, next) {
		if (channel != 0 && l->channel != channel)
			continue;
		if (l->state == LOCAL_SILENT)
			local_announce(l);
		local_may_talk_again(l);
	}
}

void
producers_away(struct producers *ps)
{
	struct local *l;

	if (ps->away)
		return;
	ps->open = false;
	ps->away = true;
	ps->hasty = 0;
	/* Messages so far have gone up, and count against no limit. */
	TAILQ_FOREACH(l, &ps->locals, link)
		l->talk.bytes = 0;
	talkers_forgive(ps);
}

/* Ends all instances, as if their sessions had ended. */
static void
forget_agreed(struct local *l)
{
	struct local_instance *i;

	TAILQ_FOREACH(i, &l->instances, link)
		if (i->state < LOCAL_INSTANCE_STOPPING)
			local_send_stop(l, i->id);
	local_forget_ids(l);
	local_forget_flushes(l);
	l->settling = false;
	/* A commit that waited for room is now counted as late. */
	rpc_conn_resume(l->server.conn);
}

void
producers_lost(struct producers *ps, uint32_t channel, uint32_t cause)
{
	struct local *l, *next;
	bool ended;

	if (channel == 0) {
		ps->open = ps->away = false;
		orphans_lost(ps);
		formers_forget(ps);
		ps->buffer_tag = 0;
	}
	TAILQ_FOREACH_SAFE(l, &ps->locals, link, next) {
		if (channel != 0 && l->channel != channel)
			continue;
		/* The upstream counts these chunks with its own losses. */
		(void)!local_scrape(l, 0, LOCAL_REST_NONE);
		ended = l->state == LOCAL_ENDED;
		local_set_state(l, LOCAL_SILENT);
		if (ended)
			local_free(l);
		else
			forget_agreed(l);
	}
}

void
producers_refused(struct producers *ps, uint32_t channel, const char *why)
{
	struct local *l = find(ps, channel);
	char text[160];

	if (l == NULL || !local_is_known(l))
		return;
	local_log(l, "by the collector: producer", utf8_escape(text,
	    sizeof(text), why, strlen(why), ""));
	if (l->state == LOCAL_ENDED) {
		local_free(l);
		return;
	}
	local_set_state(l, LOCAL_REFUSED);
	forget_agreed(l);
}

void
producers_command(struct producers *ps, uint32_t channel,
    const uint8_t *command, size_t len)
{
	struct local *l = find(ps, channel);

	if (l != NULL && l->state == LOCAL_ANNOUNCED)
		local_command(l, command, len);
}

void
producers_origin(struct producers *ps, uint32_t channel, const uint8_t *origin,
    size_t len)
{
	struct local *l = find(ps, channel);

	if (l != NULL)
		local_note_origin(l, origin, len);
}

void
producers_set_buffer_tag(struct producers *ps, uint32_t tag)
{
	ps->buffer_tag = tag;
}

uint32_t
producers_buffer_tag(const struct producers *ps)
{
	return ps->buffer_tag;
}

void
producers_resume(struct producers *ps, uint32_t channel)
{
	struct local *l, *next;

	TAILQ_FOREACH_SAFE(l, &ps->locals, link, next) {
		if (channel != 0 && l->channel != channel)
			continue;
		if (l->state != LOCAL_ENDED)
			rpc_conn_resume(l->server.conn);
		if (l->settling)
			local_settle(l);
	}
}

/* ---- for --status ---- */

size_t
producers_count(const struct producers *ps)
{
	return ps->n_locals;
}

void
producers_each(const struct producers *ps,
    void (*fn)(void *arg, const struct producers_view *v), void *arg)
{
	struct producers_view v;
	struct local *l;

	TAILQ_FOREACH(l, &ps->locals, link) {
		v = (struct producers_view){
			.channel = l->channel,
			.name = l->name,
			.pid = l->pid,
			.uid = l->uid,
			.emulated = l->memory == MEMORY_EMULATED,
			.announced = local_is_known(l),
			.data_sources = l->n_sources,
			.instances = l->n_instances,
			.writers = l->n_writers,
			.chunks = l->chunks,
			.bytes = l->bytes,
			.late = l->late,
			.discarded = l->discarded,
		};
		fn(arg, &v);
	}
}
