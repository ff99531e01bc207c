#include <stdlib.h>
#include <string.h>

#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"
#include "transport/socket/peer.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"

/* Field number: wire-format.md, GetAsyncCommandResponse. */
#define CMD_STOP 2

struct local_queued {
	TAILQ_ENTRY(local_queued) link;
	size_t len;
	bool with_shm_fd;
	uint8_t data[];
};

void
local_log(const struct local *l, const char *what, const char *why)
{
	log_limited(&l->owner->refusals, loop_now_ms(), LOG_LEVEL_WARN,
	    "%s: %s refused: %s", l->conn != NULL ?
	    rpc_conn_peer(l->conn)->text : "a producer", what, why);
}

void
local_send(struct local *l, const struct pb_writer *w, bool with_shm_fd)
{
	struct local_queued *c;

	if (l->conn == NULL)
		return;
	if (w->failed)
		goto no_memory;
	if (l->commands.conn != NULL) {
		rpc_reply(l->commands, w->data, w->len, true, with_shm_fd ?
		    shm_fd(l->shm) : -1);
		return;
	}
	l->queued_bytes += w->len + sizeof(*c);
	if (l->queued_bytes >
	    (size_t)l->owner->settings->limits.max_send_queue_kb * 1024) {
		rpc_conn_close(l->conn, "it never called GetAsyncCommand and "
		    "its commands are over limits.max_send_queue_kb");
		return;
	}
	if ((c = malloc(sizeof(*c) + w->len)) == NULL)
		goto no_memory;
	c->len = w->len;
	c->with_shm_fd = with_shm_fd;
	if (w->len > 0)
		memcpy(c->data, w->data, w->len);
	TAILQ_INSERT_TAIL(&l->queue, c, link);
	return;

no_memory:
	rpc_conn_close(l->conn, "out of memory for a command");
}

void
local_send_stop(struct local *l, uint64_t instance)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, CMD_STOP);
	pb_put_uint(&w, 1, instance);
	pb_nest_end(&w, mark);
	local_send(l, &w, false);
	pb_writer_done(&w);
}

void
local_send_to(struct local *l, struct rpc_call call)
{
	struct local_queued *c;

	l->commands = call;
	while ((c = TAILQ_FIRST(&l->queue)) != NULL) {
		TAILQ_REMOVE(&l->queue, c, link);
		rpc_reply(call, c->data, c->len, true, c->with_shm_fd ?
		    shm_fd(l->shm) : -1);
		free(c);
	}
	l->queued_bytes = 0;
}

void
local_send_nothing(struct local *l)
{
	struct local_queued *c;

	l->commands.conn = NULL;
	while ((c = TAILQ_FIRST(&l->queue)) != NULL) {
		TAILQ_REMOVE(&l->queue, c, link);
		free(c);
	}
}
