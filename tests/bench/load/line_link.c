#include <stdlib.h>

#include "tests/bench/load/link_relay_internal.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static uint64_t
value_of(const void *args, size_t len, uint32_t number)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, args, len);
	while (pb_next(&r, &f))
		if (f.number == number)
			return f.value;
	return 0;
}

/* The nested message or string of that number. */
static struct pb_field
bytes_of(const void *args, size_t len, uint32_t number)
{
	struct pb_field f, none = { .len = 0 };
	struct pb_reader r;

	pb_init(&r, args, len);
	while (pb_next(&r, &f))
		if (f.number == number && f.wire == PB_BYTES)
			return f;
	return none;
}

static uint64_t
say_open(struct link_line *l, const void *args, size_t len)
{
	struct pb_field name = bytes_of(args, len, 3);
	struct pb_writer w;
	uint64_t number;

	pb_writer_init(&w);
	pb_put_bytes(&w, 1, name.data, name.len);
	pb_put_int(&w, 2, (int32_t)l->channel);
	pb_put_int(&w, 3, 1000);
	pb_put_string(&w, 4, "tributary-load");
	number = link_relay_say(l, LINK_UP_OPEN, w.data, w.len, 0);
	pb_writer_done(&w);
	return number;
}

static uint64_t
say(struct link_line *l, enum line_call what, const void *args, size_t len)
{
	struct pb_field f;

	switch (what) {
	case LINE_INITIALIZE:
		return say_open(l, args, len);
	case LINE_REGISTER_SOURCE:
		f = bytes_of(args, len, 1);
		return link_relay_say(l, LINK_UP_REGISTER_SOURCE, f.data,
		    f.len, 0);
	case LINE_REGISTER_WRITER:
		return link_relay_say(l, LINK_UP_REGISTER_WRITER, args, len,
		    0);
	case LINE_UNREGISTER_WRITER:
		return link_relay_say(l, LINK_UP_UNREGISTER_WRITER, NULL, 0,
		    value_of(args, len, 1));
	case LINE_COMMIT:
		return link_relay_say(l, LINK_UP_COMMIT, args, len, 0);
	case LINE_STARTED:
		return link_relay_say(l, LINK_UP_STARTED, NULL, 0,
		    value_of(args, len, 1));
	case LINE_STOPPED:
		return link_relay_say(l, LINK_UP_STOPPED, NULL, 0,
		    value_of(args, len, 1));
	case LINE_COMMANDS: /* come by themselves */
	case LINE_SYNC:
	case LINE_LINK_OPEN:
	case LINE_LINK_UP:
	case LINE_LINK_DOWN:
	case LINE_INIT_RELAY:
	case LINE_CALLS:
		break;
	}
	return 0;
}

static uint64_t
link_call(struct line *line, enum line_call what, const void *args, size_t len,
    bool wants_reply)
{
	struct link_line *l = (struct link_line *)line;
	uint64_t number;

	if (l->relay == NULL || l->channel == 0)
		return 0;
	number = say(l, what, args, len);
	if (!wants_reply || number == 0 || link_relay_await(l, number) != 0)
		return 0;
	return number;
}

static size_t
link_queued(const struct line *line)
{
	const struct link_line *l = (const struct link_line *)line;

	return l->relay != NULL ? link_relay_queued(l->relay) : 0;
}

static bool
link_has_fds(const struct line *line)
{
	return false;
}

/* One device of a relay cannot leave lying what is for all of them. */
static void
link_pause(struct line *line, bool pause)
{
}

static void
link_raw(struct line *line, const void *data, size_t len)
{
}

static void
link_end(struct line *line, enum line_cut how)
{
	struct link_line *l = (struct link_line *)line;

	loop_call_cancel(&l->up);
	if (l->relay != NULL && how == LINE_CLEAN && l->channel != 0)
		(void)link_relay_say(l, LINK_UP_CLOSE, "", 0, 0);
	else if (l->relay != NULL && how != LINE_CLEAN)
		link_relay_cut(l->relay, how, l);
	link_relay_forget(l);
	free(l);
}

const struct line_type link_line_type = {
	.call = link_call,
	.queued = link_queued,
	.has_fds = link_has_fds,
	.pause = link_pause,
	.raw = link_raw,
	.end = link_end,
};

static void
up_cb(void *arg)
{
	struct link_line *l = arg;

	if (l->relay == NULL)
		return;
	l->channel = ++l->relay->last_channel;
	l->ops->up(l->arg);
}

void
link_line_open(struct link_line *l)
{
	loop_defer(l->relay->loop, &l->up, up_cb, l);
}
