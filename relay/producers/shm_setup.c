/* The memory that a producer shares with us. */
#include "protos/fields.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"
#include "transport/wire/pb_writer.h"

/* Field number: wire-format.md, GetAsyncCommandResponse. */
#define CMD_SETUP_TRACING 3

/* The page size in SetupTracing when no session asks for another. */
#define PAGE_KB_DEFAULT (SHM_PAGE_UNIT / 1024)

static uint64_t
room(const struct producers *ps)
{
	uint64_t most = ps->settings->limits.max_total_shm_kb * 1024;

	return ps->shm_bytes < most ? most - ps->shm_bytes : 0;
}

static int
make_shm(struct local *l, uint32_t page_kb)
{
	struct producers *ps = l->owner;
	size_t want_page, size, page;

	/*
	 * A page other than the usual is what a session asks for, and wins over
	 * what the producer would like.
	 */
	want_page = page_kb != 0 && page_kb != PAGE_KB_DEFAULT ?
	    (size_t)page_kb * 1024 : l->page_size_hint;
	shm_valid_sizes(l->shm_size_hint, want_page, &size, &page);
	if (size / 1024 > ps->settings->limits.max_shm_kb ||
	    size > room(ps))
		size = SHM_SIZE_DEFAULT;
	if (size > room(ps)) {
		rpc_conn_close(l->server.conn, "limits.max_total_shm_kb is reached");
		return -1;
	}
	if ((l->shm = shm_new(size, page)) == NULL) {
		rpc_conn_close(l->server.conn, "no memory to share");
		return -1;
	}
	ps->shm_bytes += size;
	local_keep(l);
	return 0;
}

int
local_set_up_tracing(struct local *l, uint32_t page_kb)
{
	struct pb_writer w;
	size_t mark, page;

	if (l->tracing_set_up)
		return 0;
	if (l->memory == MEMORY_OURS && make_shm(l, page_kb) != 0)
		return -1;
	if (l->shm != NULL)
		page = shm_page_size(l->shm) / 1024;
	else
		page = page_kb != 0 ? page_kb : PAGE_KB_DEFAULT;
	l->tracing_set_up = true;
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, CMD_SETUP_TRACING);
	pb_put_uint(&w, SetupTracing_shared_buffer_page_size_kb, page);
	pb_nest_end(&w, mark);
	producer_server_send(&l->server, &w, l->memory == MEMORY_OURS ?
	    shm_fd(l->shm) : -1);
	pb_writer_done(&w);
	return 0;
}

void
local_adopt(struct local *l, struct rpc_call call,
    const struct producer_init *q)
{
	const struct relay_limits *lim = &l->owner->settings->limits;
	struct shm *shm;
	char err[160];

	if ((shm = producer_init_shm(call, q, err, sizeof(err))) == NULL) {
		if (err[0] != '\0')
			local_log(l, "the producer's shared memory", err);
		return;
	}
	if (shm_size(shm) / 1024 > lim->max_shm_kb ||
	    shm_size(shm) > room(l->owner)) {
		local_log(l, "the producer's shared memory", "larger than "
		    "limits.max_shm_kb or max_total_shm_kb permit");
		shm_free(shm);
		return;
	}
	l->shm = shm;
	l->memory = MEMORY_PROVIDED;
	l->owner->shm_bytes += shm_size(shm);
}
