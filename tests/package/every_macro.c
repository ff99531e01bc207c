/*
 * Everything that libtributary's headers offer, in C11 and in C++17.  Ends with
 * status 0; where a service is, without one, or by a wrong address is all the
 * same to it.
 */
#include <stdio.h>
#include <string.h>
#include <tributary/data_source.h>
#include <tributary/track_event.h>
#include <tributary/tributary.h>

TRIBUTARY_CATEGORY_DECLARE(net);
TRIBUTARY_CATEGORY(net, "net", "Requests and answers", "");
TRIBUTARY_CATEGORY(disk, "disk", "Files", "io,slow");

static unsigned evaluated;

static int64_t
evaluate(void)
{
	return (int64_t)++evaluated;
}

static void
slices(void)
{
	TRIBUTARY_SLICE(net, "scope");
	TRIBUTARY_SLICE(net, "scope with arguments", tributary_int("i", 1),
	    tributary_string("s", "text"));
	TRIBUTARY_BEGIN(net, "begin");
	TRIBUTARY_END(net);
	TRIBUTARY_BEGIN(disk, "begin", TRIBUTARY_HERE);
	TRIBUTARY_END(disk, tributary_uint("u", 1));
	TRIBUTARY_INSTANT(net, "instant");
	if (TRIBUTARY_ENABLED(disk))
		TRIBUTARY_INSTANT(disk, "instant", tributary_bool("b", true));
	else
		TRIBUTARY_INSTANT(net, "nobody evaluates",
		    tributary_int("evaluated", evaluate()));
}

static void
arguments(void)
{
	TRIBUTARY_INSTANT(net, "arguments", tributary_double("d", 0.5),
	    tributary_pointer("p", &evaluated),
	    tributary_string_n("n", "text", 2), tributary_dict("dict"),
	    tributary_array("array"), tributary_int(NULL, 1),
	    tributary_end_of(), tributary_end_of(), tributary_name("name"),
	    tributary_flow(1), tributary_flow_end(2), tributary_flow_global(3),
	    tributary_flow_end_global(4), tributary_correlation(5),
	    tributary_correlation_string("6"),
	    tributary_location("file", "function", 7),
	    tributary_log(TRIBUTARY_INFO, "message"),
	    tributary_encoded("", 0), tributary_at(tributary_now_ns()),
	    tributary_at_clock(tributary_now_ns(), 6));
	/* As many as there may be. */
	TRIBUTARY_INSTANT(net, "many",
	    tributary_int("1", 1), tributary_int("2", 1),
	    tributary_int("3", 1), tributary_int("4", 1),
	    tributary_int("5", 1), tributary_int("6", 1),
	    tributary_int("7", 1), tributary_int("8", 1),
	    tributary_int("9", 1), tributary_int("10", 1),
	    tributary_int("11", 1), tributary_int("12", 1),
	    tributary_int("13", 1), tributary_int("14", 1),
	    tributary_int("15", 1), tributary_int("16", 1),
	    tributary_int("17", 1), tributary_int("18", 1),
	    tributary_int("19", 1), tributary_int("20", 1),
	    tributary_int("21", 1), tributary_int("22", 1),
	    tributary_int("23", 1), tributary_int("24", 1),
	    tributary_int("25", 1), tributary_int("26", 1),
	    tributary_int("27", 1), tributary_int("28", 1),
	    tributary_int("29", 1), tributary_int("30", 1),
	    tributary_int("31", 1), tributary_int("32", 1),
	    tributary_int("33", 1), tributary_int("34", 1),
	    tributary_int("35", 1), tributary_int("36", 1),
	    tributary_int("37", 1), tributary_int("38", 1));
}

static void
tracks(void)
{
	struct tributary_track thread = tributary_thread_track();
	struct tributary_track own = tributary_track("own", 1, &thread);
	struct tributary_track count = tributary_counter_track("count",
	    TRIBUTARY_UNIT_COUNT, tributary_process_track());

	tributary_set_thread_name("main");
	count.unit_name = "pieces";
	TRIBUTARY_BEGIN(net, "on its own", tributary_on(&own));
	TRIBUTARY_END(net, tributary_on(&own));
	TRIBUTARY_COUNTER(net, &count, evaluate());
	TRIBUTARY_COUNTER_DOUBLE(net, &count, 0.5);
}

static bool
on_setup(struct tributary_instance *i, const void *config, size_t len,
    void *arg, void **context)
{
	(void)i;
	(void)config;
	(void)len;
	*context = arg;
	return true;
}

static void
write_packet(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	(void)i;
	(void)context;
	(void)arg;
	if (first)
		tributary_packet_clears_state(p);
	tributary_packet_needs_state(p);
	tributary_put_uint(p, 8, tributary_now_ns());
	tributary_begin(p, 900);
	tributary_put_string(p, 1, "text");
	tributary_put_bytes(p, 1, "text", 4);
	tributary_put_int(p, 2, -1);
	tributary_put_sint(p, 2, -1);
	tributary_put_fixed32(p, 3, 1);
	tributary_put_fixed64(p, 4, 1);
	tributary_put_float(p, 5, 0.5f);
	tributary_put_double(p, 6, 0.5);
	tributary_put_encoded(p, "", 0);
	tributary_end(p);
}

static int
source(void)
{
	static struct tributary_source_ops ops;
	struct tributary_source_options options;
	struct tributary_source *s;

	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.name = "every.macro";
	options.full = TRIBUTARY_FULL_STALL;
	ops.size = sizeof(ops);
	ops.setup = on_setup;
	if ((s = tributary_source_add(&options, &ops)) == NULL)
		return 1;
	if (tributary_source_enabled(s))
		return 1;
	tributary_source_write(s, write_packet, NULL);
	return 0;
}

#ifdef __cplusplus
/* A scope that is left by an exception, in a template. */
template <typename T>
static void
fail(T value)
{
	TRIBUTARY_SLICE(net, "scope", tributary_int("value", value));
	throw value;
}

static bool
fails(void)
{
	try {
		fail(1);
	} catch (int) {
		return true;
	}
	return false;
}

/* Lambdas, and members of classes. */
class Worker {
	struct tributary_track track_ = tributary_track("worker", 1,
	    tributary_process_track());

public:
	void
	work()
	{
		auto step = [this](int i) {
			TRIBUTARY_INSTANT(net, "step", tributary_int("i", i),
			    tributary_on(&track_));
		};

		for (int i = 0; i < 3; i++)
			step(i);
	}
};

static bool
cpp(void)
{
	Worker().work();
	return fails();
}
#else
static bool
cpp(void)
{
	return true;
}
#endif

int
main(void)
{
	struct tributary_startup_options startup = TRIBUTARY_STARTUP_OPTIONS;
	const char *const none[] = { "none", NULL };
	struct tributary_options options = TRIBUTARY_OPTIONS;

	options.address = "/nowhere/a/service";
	options.name = "every_macro";
	options.children = TRIBUTARY_CHILDREN_DO_NOT_TRACE;
	startup.categories = none;
	if (tributary_startup(&startup) != 0 ||
	    tributary_start(&options) != 0 || source() != 0)
		return 1;
	slices();
	arguments();
	tracks();
	tributary_trigger("trigger");
	if (tributary_wait_connected(0) || tributary_flush(0) || !cpp())
		return 1;
	tributary_stop(1);
	printf("%s %u\n", tributary_version(), evaluated);
	return 0;
}
