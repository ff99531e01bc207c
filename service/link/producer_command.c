#include "service/link/producer_command.h"

#include "transport/wire/pb_writer.h"

enum {
	CMD_START = 1,
	CMD_STOP = 2,
	CMD_SETUP_TRACING = 3,
	CMD_FLUSH = 5,
	CMD_SETUP = 6,
	CMD_CLEAR = 7,
};

void
producer_command_setup_tracing(struct pb_writer *w, size_t page_size)
{
	size_t mark = pb_nest_begin(w, CMD_SETUP_TRACING);

	pb_put_uint(w, 1, page_size / 1024);
	pb_nest_end(w, mark);
}

static void
with_config(struct pb_writer *w, uint32_t command, uint64_t instance,
    const uint8_t *config, size_t len)
{
	size_t mark = pb_nest_begin(w, command);

	pb_put_uint(w, 1, instance);
	pb_put_bytes(w, 2, config, len);
	pb_nest_end(w, mark);
}

void
producer_command_setup(struct pb_writer *w, uint64_t instance,
    const uint8_t *config, size_t len)
{
	with_config(w, CMD_SETUP, instance, config, len);
}

void
producer_command_start(struct pb_writer *w, uint64_t instance,
    const uint8_t *config, size_t len)
{
	with_config(w, CMD_START, instance, config, len);
}

void
producer_command_stop(struct pb_writer *w, uint64_t instance)
{
	size_t mark = pb_nest_begin(w, CMD_STOP);

	pb_put_uint(w, 1, instance);
	pb_nest_end(w, mark);
}

void
producer_command_flush(struct pb_writer *w, uint64_t request_id,
    const uint64_t *instances, size_t n, uint64_t flags)
{
	size_t i, mark = pb_nest_begin(w, CMD_FLUSH);

	for (i = 0; i < n; i++)
		pb_put_uint(w, 1, instances[i]);
	pb_put_uint(w, 2, request_id);
	pb_put_uint(w, 3, flags);
	pb_nest_end(w, mark);
}

void
producer_command_clear(struct pb_writer *w, const uint64_t *instances,
    size_t n)
{
	size_t i, mark = pb_nest_begin(w, CMD_CLEAR);

	for (i = 0; i < n; i++)
		pb_put_uint(w, 1, instances[i]);
	pb_nest_end(w, mark);
}
