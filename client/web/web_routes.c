#include "client/web/web_routes.h"

#include <string.h>
#include <time.h>

#include "client/metrics/machine_metrics.h"
#include "client/web/web_page.h"
#include "client/web/web_snapshot.h"
#include "protos/control.pb-c.h"
#include "transport/metrics/process_metrics.h"

#define OK          200u
#define NOT_FOUND   404u
#define CONFLICT    409u
#define UNAVAILABLE 503u

#define PLAIN "text/plain; charset=utf-8"

static unsigned
put_overview(const struct web_asked *a, const struct web_snapshot *s, FILE *out)
{
	web_page_print(out, s, &a->query, a->collector, a->has_archive,
	    (uint64_t)time(NULL));
	return OK;
}

static unsigned
put_metrics(const struct web_asked *a, const struct web_snapshot *s, FILE *out)
{
	Tributary__ProcessMetrics own;
	struct metrics_page page = { .collector = s->metrics, .own = &own,
		.answers = a->answers, .n_answers = a->n_answers,
		.connections = a->connections };

	process_metrics_read(&own);
	metrics_text_print(out, &page, a->form);
	return OK;
}

static unsigned
put_machine(const struct web_asked *a, const struct web_snapshot *s, FILE *out)
{
	const Tributary__MachineState *m;

	if (s->machines == NULL) {
		fprintf(out, "the collector cannot be asked: %s\n",
		    s->why[0] != '\0' ? s->why : "it told no machines");
		return UNAVAILABLE;
	}
	switch (machine_metrics_find(s->machines, a->query.machine, &m)) {
	case MACHINE_METRICS_NONE:
		fputs("the collector knows no machine of this name: "
		    "`tributary machines` lists them\n", out);
		return NOT_FOUND;
	case MACHINE_METRICS_SEVERAL:
		fputs("several machines of this name are connected: give each "
		    "a name of its own (--machine-name)\n", out);
		return CONFLICT;
	case MACHINE_METRICS_ONE:
		break;
	}
	machine_metrics_print(out, m, s->machines->now_ns, a->form);
	return OK;
}

static unsigned
put_ready(const struct web_asked *a, const struct web_snapshot *s, FILE *out)
{
	if (s->why[0] == '\0' && s->metrics != NULL && s->metrics->draining) {
		/* HAProxy takes it for "no new ones" (disable-on-404). */
		fputs("draining: relays are asked to go to other "
		    "collectors\n", out);
		return NOT_FOUND;
	}
	if (s->why[0] == '\0') {
		fputs("ready\n", out);
		return OK;
	}
	fprintf(out, "the collector cannot be asked: %s\n", s->why);
	return UNAVAILABLE;
}

static unsigned
put_healthy(const struct web_asked *a, const struct web_snapshot *s, FILE *out)
{
	fputs("healthy\n", out);
	return OK;
}

static unsigned
put_style(const struct web_asked *a, const struct web_snapshot *s, FILE *out)
{
	fputs(web_page_style(), out);
	return OK;
}

static unsigned
put_script(const struct web_asked *a, const struct web_snapshot *s, FILE *out)
{
	fputs(web_page_script(), out);
	return OK;
}

static const struct web_route machine_route = { "/metrics", NULL, .asks = true,
	.wish = WEB_WISH_MACHINES, .print = put_machine };

/* Orchestrators and browsers without a token learn nothing at open ones. */
static const struct web_route routes[] = {
	{ "/", "text/html; charset=utf-8", .asks = true, .wish = WEB_WISH_ALL,
	    .print = put_overview },
	{ "/style.css", "text/css; charset=utf-8", .is_open = true,
	    .print = put_style },
	{ "/metrics", NULL, .asks = true, .wish = WEB_WISH_METRICS,
	    .of_machine = &machine_route, .print = put_metrics },
	{ "/healthz", PLAIN, .is_open = true, .print = put_healthy },
	{ "/archive", "text/html; charset=utf-8", .is_archive = true,
	    .job = WEB_JOB_PAGE, .scripts = true },
	{ "/archive/segment", "application/octet-stream", .is_archive = true,
	    .job = WEB_JOB_SEGMENT },
	{ "/archive/trace", "application/octet-stream", .is_archive = true,
	    .job = WEB_JOB_TRACE },
	{ "/archive.js", "text/javascript; charset=utf-8", .is_open = true,
	    .is_archive = true, .print = put_script },
	{ "/readyz", PLAIN, .asks = true, .wish = WEB_WISH_METRICS,
	    .print = put_ready },
};

const struct web_route *
web_routes_find(const char *path)
{
	size_t i;

	for (i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (strcmp(path, routes[i].path) == 0)
			return &routes[i];
	return NULL;
}

const char *
web_routes_type(const struct web_route *r, const struct web_asked *a,
    unsigned status)
{
	if (r->type != NULL)
		return r->type;
	return status == OK ? metrics_type(a->form) : PLAIN;
}
