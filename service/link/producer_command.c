#include "service/link/producer_command.h"

#include "protos/fields.h"
#include "transport/wire/pb_writer.h"

void
producer_command_setup_tracing(struct pb_writer *w, size_t page_size)
{
	size_t mark = pb_nest_begin(w, GetAsyncCommandResponse_setup_tracing);

	pb_put_uint(w, SetupTracing_shared_buffer_page_size_kb,
	    page_size / 1024);
	pb_nest_end(w, mark);
}

/* SetupDataSource and StartDataSource have the same fields. */
static void
with_config(struct pb_writer *w, uint32_t command, uint64_t instance,
    const uint8_t *config, size_t len)
{
	size_t mark = pb_nest_begin(w, command);

	pb_put_uint(w, StartDataSource_new_instance_id, instance);
	pb_put_bytes(w, StartDataSource_config, config, len);
	pb_nest_end(w, mark);
}

void
producer_command_setup(struct pb_writer *w, uint64_t instance,
    const uint8_t *config, size_t len)
{
	with_config(w, GetAsyncCommandResponse_setup_data_source, instance,
	    config, len);
}

void
producer_command_start(struct pb_writer *w, uint64_t instance,
    const uint8_t *config, size_t len)
{
	with_config(w, GetAsyncCommandResponse_start_data_source, instance,
	    config, len);
}

void
producer_command_stop(struct pb_writer *w, uint64_t instance)
{
	size_t mark = pb_nest_begin(w,
	    GetAsyncCommandResponse_stop_data_source);

	pb_put_uint(w, StopDataSource_instance_id, instance);
	pb_nest_end(w, mark);
}

void
producer_command_flush(struct pb_writer *w, uint64_t request_id,
    const uint64_t *instances, size_t n, uint64_t flags)
{
	size_t i, mark = pb_nest_begin(w, GetAsyncCommandResponse_flush);

	for (i = 0; i < n; i++)
		pb_put_uint(w, Flush_data_source_ids, instances[i]);
	pb_put_uint(w, Flush_request_id, request_id);
	pb_put_uint(w, Flush_flags, flags);
	pb_nest_end(w, mark);
}

void
producer_command_clear(struct pb_writer *w, const uint64_t *instances,
    size_t n)
{
	size_t mark = pb_nest_begin(w,
	    GetAsyncCommandResponse_clear_incremental_state);
	size_t i;

	for (i = 0; i < n; i++)
		pb_put_uint(w, ClearIncrementalState_data_source_ids,
		    instances[i]);
	pb_nest_end(w, mark);
}
