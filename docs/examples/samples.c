/*
 * A program with a data source of its own: each line of its input becomes a
 * packet in every session that asks for "example.samples".
 *
 *	samples
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/data_source.h>

/* Numbers of the fields in trace_packet.proto and test_event.proto. */
enum { TIMESTAMP = 8, FOR_TESTING = 900, STR = 1, COUNTER = 3 };

/* Each session has an instance, and each instance a state of its own. */
struct session {
	unsigned written;
};

static bool
on_setup(struct tributary_instance *i, const void *config, size_t len,
    void *arg, void **context)
{
	(void)i, (void)config, (void)len, (void)arg;
	return (*context = calloc(1, sizeof(struct session))) != NULL;
}

static void
on_destroy(struct tributary_instance *i, void *context)
{
	(void)i;
	free(context);
}

/* One packet of one session. */
static void
put_line(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	struct session *s = (struct session *)context;

	(void)i, (void)first;
	tributary_put_uint(p, TIMESTAMP, tributary_now_ns());
	tributary_begin(p, FOR_TESTING);
	tributary_put_string(p, STR, (const char *)arg);
	tributary_put_uint(p, COUNTER, ++s->written);
	tributary_end(p);
}

int
main(void)
{
	static struct tributary_source_ops ops;
	struct tributary_source_options options = { 0 };
	struct tributary_source *source;
	char line[256];

	ops.size = sizeof(ops);
	ops.setup = on_setup;
	ops.destroy = on_destroy;
	options.size = sizeof(options);
	options.name = "example.samples";
	options.full = TRIBUTARY_FULL_STALL; /* rather than to miss a line */
	if ((source = tributary_source_add(&options, &ops)) == NULL ||
	    tributary_start(NULL) != 0)
		return 1;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		tributary_source_write(source, put_line, line);
		printf("%s\n", line);
		fflush(stdout);
	}
	tributary_stop(0);
	return 0;
}
