#include "client/library/producer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/library/commit_batch.h"
#include "client/library/producer_internal.h"
#include "protos/fields.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/wire/pb_reader.h"

static void connect_now(void *arg);

static void
changed(struct producer *p, enum producer_state state, const char *text)
{
	if (p->changed != NULL)
		p->changed(p->arg, state, text);
}

/* ---- connection ---- */

/* Frees the state of the connection; instances end without stop(). */
static void
disconnect(struct producer *p)
{
	p->ready = false;
	producer_instance_drop_all(p);
	loop_cancel(p->loop, p);
	commit_batch_free(p->batch);
	p->batch = NULL;
	shm_free(p->shm);
	p->shm = NULL;
	memset(p->writer_ids, 0, sizeof(p->writer_ids));
	if (p->rpc != NULL)
		rpc_client_free(p->rpc);
	p->rpc = NULL;
	producer_machine_end(p);
}

static void
shutdown_finish(void *arg)
{
	struct producer *p = arg;
	void (*done)(void *) = p->shutdown_done;

	loop_timer_clear(p->shutdown_timer);
	p->shutdown_done = NULL;
	if (done != NULL)
		done(p->shutdown_arg);
}

/*
 * Exponential backoff; jitter takes up to a quarter, so that the producers of a
 * service that was restarted do not all connect at once.
 */
static uint64_t
retry_pause(struct producer *p)
{
	uint64_t ms = PRODUCER_RETRY_FIRST_MS;
	unsigned i;

	for (i = 0; i < p->failures && ms < PRODUCER_RETRY_LAST_MS; i++)
		ms *= 2;
	if (ms > PRODUCER_RETRY_LAST_MS)
		ms = PRODUCER_RETRY_LAST_MS;
	p->failures++;
	return ms - ms / 4 + loop_boottime_ns() % (ms / 4 + 1);
}

void
producer_reconnect(struct producer *p, const char *text)
{
	disconnect(p);
	if (p->shutting_down) {
		loop_timer_set(p->shutdown_timer, 0, 0);
		return;
	}
	loop_timer_set(p->retry, retry_pause(p), 0);
	changed(p, PRODUCER_CONNECTING, text);
}

static void
down_cb(struct rpc_client *c, const char *text, void *arg)
{
	producer_reconnect(arg, text);
}

void
producer_tell(struct producer *p, const char *method)
{
	if (p->rpc != NULL && !p->scratch.failed)
		rpc_invoke(p->rpc, method, p->scratch.data, p->scratch.len,
		    NULL, NULL);
}

void
producer_tell_id(struct producer *p, const char *method, uint64_t id)
{
	pb_writer_reset(&p->scratch);
	pb_put_uint(&p->scratch, NotifyDataSourceStartedRequest_data_source_id,
	    id);
	producer_tell(p, method);
}

static void
command_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct producer *p = arg;

	if (ok && more) {
		producer_command(p, msg, len, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	producer_reconnect(p, "the service ended the connection");
}

static void
is_ready(struct producer *p)
{
	p->failures = 0;
	changed(p, PRODUCER_READY, NULL);
}

static void
registered_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct producer *p = arg;
	struct pb_reader r;
	struct pb_field f;
	char text[256];

	if (fd >= 0)
		close(fd);
	if (!ok) {
		/* The service has no memory, or the connection is ending. */
		producer_reconnect(p, "the service refused a data source");
		return;
	}
	if (p->registering > 0 && --p->registering == 0)
		is_ready(p);
	PB_FOREACH(&f, &r, msg, len)
		if (f.number == RegisterDataSourceResponse_error &&
		    f.wire == PB_BYTES && f.len > 0)
			log_warn("the service refused a data source: %s",
			    log_escape(text, sizeof(text),
			    (const char *)f.data, f.len));
}

static void
put_descriptor(struct pb_writer *w, const struct producer_source *src)
{
	pb_put_string(w, DataSourceDescriptor_name, src->name);
	pb_put_uint(w, DataSourceDescriptor_will_notify_on_stop, 1);
	pb_put_uint(w, DataSourceDescriptor_will_notify_on_start, 1);
	if (src->handles_incremental_state_clear)
		pb_put_uint(w,
		    DataSourceDescriptor_handles_incremental_state_clear, 1);
	if (src->no_flush)
		pb_put_uint(w, DataSourceDescriptor_no_flush, 1);
}

static void
register_source(struct producer *p, const struct producer_source *src)
{
	size_t mark;

	pb_writer_reset(&p->scratch);
	mark = pb_nest_begin(&p->scratch,
	    RegisterDataSourceRequest_data_source_descriptor);
	put_descriptor(&p->scratch, src);
	pb_nest_end(&p->scratch, mark);
	if (!p->scratch.failed)
		rpc_invoke(p->rpc, "RegisterDataSource", p->scratch.data,
		    p->scratch.len, registered_cb, p);
}

static void
initialized_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct producer *p = arg;
	struct pb_reader r;
	struct pb_field f;
	size_t i;

	if (fd >= 0)
		close(fd);
	if (!ok) {
		producer_reconnect(p, "the service refused the connection");
		return;
	}
	p->emulated = false;
	PB_FOREACH(&f, &r, msg, len)
		if (f.number == InitializeConnectionResponse_use_shmem_emulation
		    && f.wire == PB_VARINT)
			p->emulated = f.value != 0;
	p->ready = true;
	producer_machine_begin(p);
	p->registering = p->n_sources;
	for (i = 0; i < p->n_sources; i++)
		register_source(p, p->sources[i]);
	if (p->n_sources == 0)
		is_ready(p);
}

static void
ready_cb(struct rpc_client *c, void *arg)
{
	struct producer *p = arg;

	pb_writer_reset(&p->scratch);
	if (p->page_bytes != 0)
		pb_put_uint(&p->scratch,
		    InitializeConnectionRequest_shared_memory_page_size_hint_bytes,
		    p->page_bytes);
	if (p->shm_bytes != 0)
		pb_put_uint(&p->scratch,
		    InitializeConnectionRequest_shared_memory_size_hint_bytes,
		    p->shm_bytes);
	pb_put_string(&p->scratch, InitializeConnectionRequest_producer_name,
	    p->name);
	pb_put_string(&p->scratch, InitializeConnectionRequest_sdk_version,
	    "tributary " TRIBUTARY_VERSION);
	rpc_invoke(c, "InitializeConnection", p->scratch.data, p->scratch.len,
	    initialized_cb, p);
	/*
	 * The connection is over already if there was no memory for the call
	 * above.
	 */
	if (p->rpc == c)
		rpc_invoke(c, "GetAsyncCommand", NULL, 0, command_cb, p);
}

static void
drained_cb(struct rpc_client *c, void *arg)
{
	struct producer *p = arg;

	if (p->batch != NULL)
		commit_batch_send(p->batch);
}

static const struct rpc_client_ops client_ops = {
	.ready = ready_cb,
	.down = down_cb,
	.drained = drained_cb,
};

static void
connect_now(void *arg)
{
	struct producer *p = arg;
	char err[DIAL_TEXT_MAX];

	p->rpc = rpc_client_new(p->loop,
	    &(struct rpc_client_setup){ .addr = &p->address, .how = p->how,
	    .service = "ProducerPort", .ops = &client_ops, .arg = p }, err,
	    sizeof(err));
	if (p->rpc == NULL) {
		producer_reconnect(p, err);
		return;
	}
	rpc_client_set_limits(p->rpc, PRODUCER_QUEUED_HARD,
	    PRODUCER_QUEUED_LOW);
	rpc_client_set_own_identity(p->rpc, p->machine_name);
}

/* ---- life ---- */

struct producer *
producer_new(struct loop *l, const struct producer_options *options)
{
	struct producer *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->loop = l;
	p->how = options->how;
	p->address = *options->address;
	p->shm_bytes = options->shm_bytes;
	p->page_bytes = options->page_bytes;
	p->changed = options->changed;
	p->arg = options->arg;
	LIST_INIT(&p->instances);
	pb_writer_init(&p->scratch);
	if ((p->name = strdup(options->name)) == NULL)
		goto fail;
	if (options->machine_name != NULL &&
	    (p->machine_name = strdup(options->machine_name)) == NULL)
		goto fail;
	p->retry = loop_timer_new(l, connect_now, p);
	p->shutdown_timer = loop_timer_new(l, shutdown_finish, p);
	if (p->retry == NULL || p->shutdown_timer == NULL)
		goto fail;
	loop_timer_set(p->retry, 0, 0);
	return p;

fail:
	producer_free(p);
	return NULL;
}

void
producer_free(struct producer *p)
{
	if (p == NULL)
		return;
	p->changed = NULL;
	disconnect(p);
	loop_timer_free(p->retry);
	loop_timer_free(p->shutdown_timer);
	pb_writer_done(&p->scratch);
	free(p->machine_name);
	free(p->name);
	free(p);
}

int
producer_add_source(struct producer *p, const struct producer_source *src)
{
	if (p->n_sources == PRODUCER_SOURCES_MAX)
		return -1;
	p->sources[p->n_sources++] = src;
	if (p->ready)
		register_source(p, src);
	return 0;
}

void
producer_activate_triggers(struct producer *p, const char *const *names,
    size_t n)
{
	size_t i;

	if (!p->ready)
		return;
	pb_writer_reset(&p->scratch);
	for (i = 0; i < n; i++)
		pb_put_string(&p->scratch,
		    ActivateTriggersRequest_trigger_names, names[i]);
	producer_tell(p, "ActivateTriggers");
}

static void
synced_cb(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct producer *p = arg;

	if (fd >= 0)
		close(fd);
	/*
	 * Finishes on a later turn: done() frees the producer, and with it the
	 * rpc_client that calls this.
	 */
	loop_timer_set(p->shutdown_timer, 0, 0);
}

void
producer_shutdown(struct producer *p, void (*done)(void *arg), void *arg)
{
	if (p->shutting_down)
		return;
	p->shutting_down = true;
	p->shutdown_done = done;
	p->shutdown_arg = arg;
	loop_timer_clear(p->retry);
	loop_timer_set(p->shutdown_timer, p->ready ? PRODUCER_SHUTDOWN_MS : 0,
	    0);
	if (!p->ready)
		return;
	producer_instance_stop_all(p);
	/* The service replies to Sync after all requests before it. */
	rpc_invoke(p->rpc, "Sync", NULL, 0, synced_cb, p);
}
