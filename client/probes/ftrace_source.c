#include "client/probes/ftrace_source.h"

#include <errno.h>
#include <stdlib.h>
#include <tributary/data_source.h>

#include "client/ftrace/config/ftrace_config.h"
#include "client/ftrace/session/ftrace.h"
#include "client/probes/probe_source.h"
#include "protos/fields.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

struct ftrace_source {
	struct probe_sources *sources;   /* borrowed */
	struct tributary_source *source; /* borrowed */
	struct ftrace *ftrace;
};

struct ftrace_instance {
	struct ftrace_source *source; /* borrowed */
	struct ftrace_session *session;
	struct tributary_instance *instance; /* borrowed */
	uint64_t flush_id;
	uint64_t dropped; /* packets, as last logged */
};

struct filling {
	ftrace_fill_fn fill;
	void *arg;
	struct ftrace_session *session;
};

static void
fill(struct tributary_packet *p, struct tributary_instance *of, void *context,
    bool first, void *arg)
{
	const struct filling *f = arg;

	/* Also behind a packet that was dropped; NULL: none came before. */
	if (first && f->session != NULL)
		ftrace_session_packet_lost(f->session);
	f->fill(p, f->arg);
}

static void
write_packet(void *arg, ftrace_fill_fn fn, void *fill_arg)
{
	struct ftrace_instance *i = arg;
	struct filling f = { fn, fill_arg, i->session };

	/* Drops are counted: log_dropped(). */
	(void)tributary_instance_write(i->instance, fill, &f);
}

static void
tell_threads(void *arg, const int32_t *tids, size_t n, bool changed)
{
	struct ftrace_instance *i = arg;

	probe_sources_tell_threads(i->source->sources,
	    tributary_instance_session(i->instance),
	    &(struct probe_threads){ tids, n, changed });
}

static void
log_dropped(struct ftrace_instance *i)
{
	uint64_t n = tributary_instance_dropped(i->instance);

	if (n == i->dropped)
		return;
	log_warn("session %llu: %llu packets of linux.ftrace dropped, the "
	    "memory is full",
	    (unsigned long long)tributary_instance_session(i->instance),
	    (unsigned long long)(n - i->dropped));
	i->dropped = n;
}

static bool
setup(struct tributary_instance *of, const void *config, size_t len, void *arg,
    void **context)
{
	char why[FTRACE_CONFIG_WHY_MAX];
	struct ftrace_output out = { write_packet, tell_threads, NULL };
	struct ftrace_config *c = ftrace_config_new(config, len, why);
	struct ftrace_instance *i;

	if ((i = calloc(1, sizeof(*i))) == NULL) {
		ftrace_config_free(c);
		return false;
	}
	i->source = arg;
	i->instance = of;
	out.arg = i;
	/* The trace is to say why nothing of the kernel is in it. */
	i->session = c != NULL ?
	    ftrace_session_new(i->source->ftrace, c, &out) :
	    ftrace_session_refused(i->source->ftrace, why, &out);
	if (i->session == NULL) {
		free(i);
		return false;
	}
	*context = i;
	return true;
}

static void
start(struct tributary_instance *of, void *context)
{
	struct ftrace_instance *i = context;

	ftrace_session_start(i->session);
}

static void
flushed(void *arg)
{
	struct ftrace_instance *i = arg;

	log_dropped(i);
	tributary_flush_done(i->instance, i->flush_id);
}

static bool
flush(struct tributary_instance *of, void *context, uint64_t flush_id)
{
	struct ftrace_instance *i = context;

	i->flush_id = flush_id;
	ftrace_session_flush(i->session, flushed, i);
	return false;
}

static void
clear_incremental_state(struct tributary_instance *of, void *context)
{
	struct ftrace_instance *i = context;

	ftrace_session_clear_incremental_state(i->session);
}

static bool
stop(struct tributary_instance *of, void *context)
{
	struct ftrace_instance *i = context;

	ftrace_session_stop(i->session);
	log_dropped(i);
	return true;
}

static void
destroy(struct tributary_instance *of, void *context)
{
	struct ftrace_instance *i = context;

	ftrace_session_free(i->session);
	free(i);
}

static const struct tributary_source_ops ops = {
	.size = sizeof(ops),
	.setup = setup,
	.start = start,
	.flush = flush,
	.clear_incremental_state = clear_incremental_state,
	.stop = stop,
	.destroy = destroy,
};

/* NULL: errno is ENOENT where there is no tracefs. */
static struct ftrace_source *
source_new(struct loop *l, char why[FTRACE_WHY_MAX])
{
	const struct ftrace_places places = { NULL };
	struct ftrace_source *s = calloc(1, sizeof(*s));
	int error;

	if (s == NULL)
		return NULL;
	if ((s->ftrace = ftrace_new(l, &places, why)) == NULL) {
		error = errno;
		ftrace_source_free(s);
		errno = error;
		return NULL;
	}
	return s;
}

/* An empty FtraceDescriptor: this machine has no atrace categories. */
static const uint8_t descriptor[] = {
	PB_TAG(DataSourceDescriptor_ftrace_descriptor, PB_BYTES), 0,
};

/* For `tributary top`: the trace has the losses of each session. */
static void
tell_lost(void *arg, const uint64_t *events, size_t n_cpus)
{
	struct ftrace_source *s = arg;
	struct pb_writer w;
	size_t i, all, one;

	pb_writer_init(&w);
	pb_put_raw(&w, descriptor, sizeof(descriptor));
	all = pb_nest_begin(&w, DataSourceDescriptor_tributary_kernel_losses);
	for (i = 0; i < n_cpus; i++) {
		if (events[i] == 0)
			continue;
		one = pb_nest_begin(&w, KernelLosses_cpus);
		pb_put_uint(&w, KernelLosses_Cpu_cpu, i);
		pb_put_uint(&w, KernelLosses_Cpu_events, events[i]);
		pb_nest_end(&w, one);
	}
	pb_nest_end(&w, all);
	/* Without memory the next time tells all of them. */
	if (!w.failed)
		(void)!tributary_source_describe(s->source, w.data, w.len);
	pb_writer_done(&w);
}

struct ftrace_source *
ftrace_source_add(struct probe_sources *sources, bool reset)
{
	struct tributary_source_options o = {
		.size = sizeof(o),
		.name = "linux.ftrace",
		/* A busy kernel writes in bursts, longer than our memory. */
		.full = TRIBUTARY_FULL_STALL,
		.no_abort = true,
		.descriptor = descriptor,
		.descriptor_len = sizeof(descriptor),
	};
	char why[FTRACE_WHY_MAX] = "no memory";
	struct ftrace_source *s;

	if ((s = source_new(sources->loop, why)) == NULL) {
		log_info("linux.ftrace is not offered: %s", why);
		return NULL;
	}
	s->sources = sources;
	o.arg = s;
	if (reset && !ftrace_reset(s->ftrace, why))
		log_warn("--reset-ftrace: %s", why);
	if ((s->source = tributary_source_add(&o, &ops)) == NULL) {
		log_warn("linux.ftrace is not offered: no memory");
		ftrace_source_free(s);
		return NULL;
	}
	ftrace_watch_losses(s->ftrace, tell_lost, s);
	return s;
}

void
ftrace_source_free(struct ftrace_source *s)
{
	if (s == NULL)
		return;
	ftrace_free(s->ftrace);
	free(s);
}

int
ftrace_source_clean_up(void)
{
	char why[FTRACE_WHY_MAX] = "no memory";
	struct ftrace_source *s;
	struct loop *l;
	int status = 1;

	if ((l = loop_new()) == NULL)
		return 1;
	s = source_new(l, why);
	if (s == NULL && errno == ENOENT) {
		log_info("nothing to clean up: %s", why);
		status = 0;
	} else if (s != NULL && ftrace_reset(s->ftrace, why)) {
		status = 0;
	} else {
		log_error("--cleanup-after-crash: %s", why);
	}
	ftrace_source_free(s);
	loop_free(l);
	return status;
}
