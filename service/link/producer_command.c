#include "service/link/producer_command.h"

#include "protos/fields.h"
#include "service/model/model.h"
#include "transport/wire/pb_writer.h"

static void
send_command(void *port, struct pb_writer *w, size_t mark, bool with_shm)
{
	const struct producer_command_port *p = port;

	pb_nest_end(w, mark);
	p->send(port, w, with_shm);
	pb_writer_done(w);
}

static void
setup_tracing(void *port, struct shm *shm, size_t page_size)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, GetAsyncCommandResponse_setup_tracing);
	pb_put_uint(&w, SetupTracing_shared_buffer_page_size_kb,
	    page_size / 1024);
	send_command(port, &w, mark, shm != NULL);
}

/* SetupDataSource and StartDataSource have the same fields. */
static void
send_with_config(void *port, uint32_t command, uint64_t instance,
    const uint8_t *config, size_t len)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, command);
	pb_put_uint(&w, StartDataSource_new_instance_id, instance);
	pb_put_bytes(&w, StartDataSource_config, config, len);
	send_command(port, &w, mark, false);
}

static void
setup_data_source(void *port, uint64_t instance, const uint8_t *config,
    size_t len)
{
	const struct producer_command_port *p = port;

	if (p->origin != NULL)
		p->origin(port, instance);
	send_with_config(port, GetAsyncCommandResponse_setup_data_source,
	    instance, config, len);
}

static void
start_data_source(void *port, uint64_t instance, const uint8_t *config,
    size_t len)
{
	send_with_config(port, GetAsyncCommandResponse_start_data_source,
	    instance, config, len);
}

static void
stop_data_source(void *port, uint64_t instance)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, GetAsyncCommandResponse_stop_data_source);
	pb_put_uint(&w, StopDataSource_instance_id, instance);
	send_command(port, &w, mark, false);
}

static void
flush(void *port, uint64_t request_id, const uint64_t *instances, size_t n,
    uint64_t flags)
{
	struct pb_writer w;
	size_t i, mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, GetAsyncCommandResponse_flush);
	for (i = 0; i < n; i++)
		pb_put_uint(&w, Flush_data_source_ids, instances[i]);
	pb_put_uint(&w, Flush_request_id, request_id);
	pb_put_uint(&w, Flush_flags, flags);
	send_command(port, &w, mark, false);
}

static void
clear_incremental_state(void *port, const uint64_t *instances, size_t n)
{
	struct pb_writer w;
	size_t i, mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w,
	    GetAsyncCommandResponse_clear_incremental_state);
	for (i = 0; i < n; i++)
		pb_put_uint(&w, ClearIncrementalState_data_source_ids,
		    instances[i]);
	send_command(port, &w, mark, false);
}

static void
resume(void *port)
{
	const struct producer_command_port *p = port;

	p->resume(port);
}

const struct producer_ops producer_command_ops = {
	.setup_tracing = setup_tracing,
	.setup_data_source = setup_data_source,
	.start_data_source = start_data_source,
	.stop_data_source = stop_data_source,
	.flush = flush,
	.clear_incremental_state = clear_incremental_state,
	.resume = resume,
};
