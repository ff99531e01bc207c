#include "client/record_advice.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "protos/nearest.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_config.pb-c.h"

typedef Perfetto__Protos__TracingServiceState service_state;
typedef Perfetto__Protos__TraceConfig__DataSource data_source;

static bool
is_remote(const service_state *s, int32_t producer_id)
{
	size_t i;

	for (i = 0; i < s->n_producers; i++) {
		if (s->producers[i]->id == producer_id)
			return s->producers[i]->machine_id != 0;
	}
	return false;
}

static const char *
offered_name(const service_state *s, size_t i)
{
	const Perfetto__Protos__DataSourceDescriptor *d =
	    s->data_sources[i]->ds_descriptor;

	return d == NULL || d->name == NULL ? "" : d->name;
}

static void
unknown(const service_state *s, const char *name, char *out, size_t out_size)
{
	const char *meant;
	struct nearest n;
	size_t i;

	nearest_init(&n, name, strlen(name));
	for (i = 0; i < s->n_data_sources; i++)
		nearest_offer(&n, offered_name(s, i));
	if ((meant = nearest_best(&n)) != NULL)
		snprintf(out, out_size, "no producer offers \"%.80s\" now; did "
		    "you mean \"%.80s\"?", name, meant);
	else
		snprintf(out, out_size, "no producer offers \"%.80s\" now; it "
		    "is recorded once one connects", name);
}

/* Whether something has to be said about it; then out holds the sentence. */
static bool
check(const service_state *s, const data_source *ds, bool all_machines,
    char *out, size_t out_size)
{
	const char *name = ds->config == NULL ? NULL : ds->config->name;
	bool here = false, elsewhere = false;
	size_t i;

	if (name == NULL || name[0] == '\0')
		return false;
	for (i = 0; i < s->n_data_sources; i++) {
		if (strcmp(offered_name(s, i), name) != 0)
			continue;
		if (is_remote(s, s->data_sources[i]->producer_id))
			elsewhere = true;
		else
			here = true;
	}
	if (here || (elsewhere &&
	    (all_machines || ds->n_machine_name_filter > 0)))
		return false;
	if (elsewhere)
		snprintf(out, out_size, "only other machines offer "
		    "\"%.80s\"; set trace_all_machines: true in the config to "
		    "record them, or say --all-machines with names", name);
	else
		unknown(s, name, out, out_size);
	return true;
}

void
record_advice(const Perfetto__Protos__TraceConfig *config,
    const service_state *state, record_advice_fn fn, void *arg)
{
	size_t i, n = 0;
	char text[512];

	for (i = 0; i < config->n_data_sources; i++) {
		if (!check(state, config->data_sources[i],
		    config->trace_all_machines, text, sizeof(text)))
			continue;
		if (n++ < RECORD_ADVICE_MAX)
			fn(arg, text);
	}
	if (n <= RECORD_ADVICE_MAX)
		return;
	snprintf(text, sizeof(text), "nor %zu more data sources of the config",
	    n - RECORD_ADVICE_MAX);
	fn(arg, text);
}
