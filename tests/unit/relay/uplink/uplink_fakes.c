#include "tests/unit/relay/uplink/uplink_fakes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "protos/fields.h"
#include "transport/wire/pb_writer.h"

struct uplink_fakes fakes;

void
fakes_reset(void)
{
	memset(&fakes, 0, sizeof(fakes));
}

void
fakes_say(const char *fmt, ...)
{
	size_t at = strlen(fakes.log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fakes.log + at, sizeof(fakes.log) - at, fmt, ap);
	va_end(ap);
	at = strlen(fakes.log);
	assert_true(at + 3 < sizeof(fakes.log));
	strcpy(fakes.log + at, "; ");
}

void
fakes_expect(const char *log)
{
	assert_string_equal(fakes.log, log);
	fakes.log[0] = '\0';
}

/* ---- relay/producers/producers.h ---- */

void
producers_recover(struct producers *ps, bool keep, void (*done)(void *),
    void *arg)
{
	fakes_say("recover %s", keep ? "keep" : "remove");
	fakes.recovered = done;
	fakes.recovered_arg = arg;
}

void
producers_announce(struct producers *ps, uint32_t channel)
{
	fakes_say("announce %u", channel);
}

void
producers_away(struct producers *ps)
{
	fakes.away++;
}

void
producers_lost(struct producers *ps, uint32_t channel, uint32_t cause)
{
	fakes_say("lost %u %u", channel, cause);
}

void
producers_command(struct producers *ps, uint32_t channel,
    const uint8_t *command, size_t len)
{
	fakes_say("command %u %.*s", channel, (int)len, command);
}

void
producers_refused(struct producers *ps, uint32_t channel, const char *why)
{
	fakes_say("refused %u %s", channel, why);
}

void
producers_resume(struct producers *ps, uint32_t channel)
{
	fakes_say("resume %u", channel);
}

size_t
producers_count(const struct producers *ps)
{
	return fakes.count;
}

void
producers_origin(struct producers *ps, uint32_t channel, const uint8_t *origin,
    size_t len)
{
	fakes_say("origin %u %.*s", channel, (int)len, origin);
}

void
producers_set_buffer_tag(struct producers *ps, uint32_t tag)
{
	fakes.buffer_tag = tag;
}

uint32_t
producers_buffer_tag(const struct producers *ps)
{
	return fakes.buffer_tag;
}

int
producers_tell_moves(struct producers *ps, void (*tell)(void *arg,
    uint32_t channel, const uint8_t *move, size_t len), void *arg)
{
	static uint8_t bytes[60000];
	struct pb_writer w;
	unsigned i;

	for (i = 0; i < fakes.moves; i++) {
		pb_writer_init(&w);
		pb_put_uint(&w, LinkMove_channel, 1);
		if (fakes.moves_are_long)
			pb_put_bytes(&w, LinkMove_register_source, bytes,
			    sizeof(bytes));
		tell(arg, 1, w.data, w.len);
		pb_writer_done(&w);
	}
	return fakes.moves_fail ? -1 : 0;
}

void
producers_settle(struct producers *ps, const struct producers_settle *settle)
{
	fakes_say("settle");
	fakes.settle = *settle;
	if (fakes.settles != 0)
		settle->asked(settle->arg, fakes.settles);
}

void
producers_settle_end(struct producers *ps)
{
	fakes_say("settle ends");
	fakes.settle.settled = NULL;
}

/* ---- relay/clocks/link_clocks.h ---- */

struct link_clocks *
link_clocks_new(struct loop *l, uint64_t period_ms,
    const struct link_clocks_ops *ops, void *arg)
{
	fakes.clocks = *ops;
	fakes.clocks_arg = arg;
	return (struct link_clocks *)&fakes.clocks;
}

void
link_clocks_free(struct link_clocks *c)
{
}

void
link_clocks_start(struct link_clocks *c)
{
	assert_false(fakes.clocks_run);
	fakes.clocks_run = true;
}

void
link_clocks_stop(struct link_clocks *c)
{
	fakes.clocks_run = false;
}

void
link_clocks_take(struct link_clocks *c, const uint8_t *clock, size_t len)
{
	fakes_say("clock %zu", len);
}

void
link_clocks_view(const struct link_clocks *c, struct link_clocks_view *out)
{
	memset(out, 0, sizeof(*out));
}

/* ---- relay/perfetto/perfetto_relay.h ---- */

struct perfetto_relay *
perfetto_relay_new(const struct perfetto_relay_setup *setup, char *err,
    size_t err_size)
{
	if (fakes.classic_fails) {
		snprintf(err, err_size, "no classic today");
		return NULL;
	}
	fakes.classic = *setup;
	fakes.classics++;
	fakes_say("classic");
	return (struct perfetto_relay *)&fakes.classic;
}

bool
perfetto_relay_without_clocks(const struct perfetto_relay *c)
{
	return fakes.perfetto_relay_without_clocks;
}

void
perfetto_relay_free(struct perfetto_relay *c)
{
	if (c == NULL)
		return;
	fakes.classics--;
	fakes_say("classic ends");
}

static void
classic_put(void *arg, uint32_t channel, enum link_up kind, const void *data,
    size_t len, uint64_t value)
{
	fakes_say("classic put %u %d", channel, (int)kind);
}

static enum upstream_room
classic_reserve(void *arg, uint32_t channel, size_t max, size_t data_len,
    uint8_t **out)
{
	fakes_say("classic reserve %u %zu", channel, max);
	return UPSTREAM_LATER;
}

static void
classic_commit(void *arg, uint32_t channel, size_t len)
{
	fakes_say("classic commit %u %zu", channel, len);
}

static void
classic_dropped(void *arg, uint32_t channel, const struct link_loss *loss)
{
	fakes_say("classic dropped %u", channel);
}

struct upstream
perfetto_relay_upward(struct perfetto_relay *c)
{
	static const struct upstream_ops ops = {
		.put = classic_put,
		.reserve = classic_reserve,
		.commit = classic_commit,
		.dropped = classic_dropped,
	};

	return (struct upstream){ .ops = &ops };
}
