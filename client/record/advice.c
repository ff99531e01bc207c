#include "client/record/advice.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/library/producer_lookup.h"
#include "protos/nearest.h"
#include "protos/service_state.pb-c.h"
#include "protos/trace_config.pb-c.h"
#include "transport/base/glob.h"
#include "transport/base/machine_word.h"

typedef Perfetto__Protos__TracingServiceState service_state;
typedef Perfetto__Protos__TraceConfig__DataSource data_source;

typedef Perfetto__Protos__TracingServiceState__Producer producer;
typedef Perfetto__Protos__TraceConfig trace_config;

/* Sentences are said up to RECORD_ADVICE_MAX. */
struct saying {
	record_advice_fn fn;
	void *arg;
	size_t n;
};

static void
say(struct saying *s, const char *sentence)
{
	if (s->n++ < RECORD_ADVICE_MAX)
		s->fn(s->arg, sentence);
}

/* Matches as tributaryd does; Perfetto's service knows no patterns. */
static bool
is_on(const producer *p, const char *machine)
{
	return machine_word_means(machine, p->machine_id, p->machine_name);
}

static bool
machine_fits(const producer *p, const data_source *ds, bool all_machines)
{
	size_t i;

	if (ds->n_machine_name_filter == 0)
		return p->machine_id == 0 || all_machines;
	for (i = 0; i < ds->n_machine_name_filter; i++)
		if (is_on(p, ds->machine_name_filter[i]))
			return true;
	return false;
}

/* Regular expressions are not evaluated here: only the collector does. */
static bool
producer_fits(const producer *p, const data_source *ds)
{
	size_t i;

	if (ds->n_producer_name_filter == 0 ||
	    ds->n_producer_name_regex_filter > 0)
		return true;
	for (i = 0; i < ds->n_producer_name_filter; i++)
		if (p->name != NULL &&
		    strcmp(p->name, ds->producer_name_filter[i]) == 0)
			return true;
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

/* Offers of a data source, by the reason why they are not recorded. */
struct offers {
	bool fits;       /* it will be recorded */
	bool elsewhere;  /* only the machine is wrong */
	bool other_name; /* only the producer's name is wrong */
};

static struct offers
look(const service_state *s, const data_source *ds, const char *name,
    bool all_machines)
{
	struct offers o = { false, false, false };
	const producer *p;
	bool here, named;
	size_t i, at = 0;

	for (i = 0; i < s->n_data_sources && !o.fits; i++) {
		if (strcmp(offered_name(s, i), name) != 0)
			continue;
		p = producer_lookup(s, s->data_sources[i]->producer_id, &at);
		here = p == NULL || machine_fits(p, ds, all_machines);
		named = p == NULL || producer_fits(p, ds);
		o.fits |= here && named;
		o.elsewhere |= !here && named;
		o.other_name |= here && !named;
	}
	return o;
}

/* Whether it is recorded as things are; else says why not. */
static bool
check(struct saying *say_to, const service_state *s, const data_source *ds,
    bool all_machines)
{
	const char *name = ds->config == NULL ? NULL : ds->config->name;
	struct offers o;
	char text[512];

	if (name == NULL || name[0] == '\0')
		return false;
	o = look(s, ds, name, all_machines);
	if (o.fits)
		return true;
	if (o.other_name)
		snprintf(text, sizeof(text), "no producer that "
		    "producer_name_filter names offers \"%.80s\" now", name);
	else if (o.elsewhere && ds->n_machine_name_filter > 0)
		snprintf(text, sizeof(text), "no machine that was asked for "
		    "offers \"%.80s\" now, but others do; tributary machines "
		    "lists them", name);
	else if (o.elsewhere)
		snprintf(text, sizeof(text), "only other machines offer "
		    "\"%.80s\": to record them say --all-machines or --machine "
		    "NAME, or set trace_all_machines: true in the config",
		    name);
	else
		unknown(s, name, text, sizeof(text));
	say(say_to, text);
	return false;
}

static bool
is_connected(const service_state *s, const char *machine)
{
	size_t i;

	if (machine_word_means(machine, 0, NULL))
		return true;
	for (i = 0; i < s->n_producers; i++)
		if (is_on(s->producers[i], machine))
			return true;
	return false;
}

/* The nearest name of a connected machine, or NULL. */
static const char *
nearest_machine(const service_state *s, const char *machine)
{
	struct nearest n;
	size_t i;

	nearest_init(&n, machine, strlen(machine));
	for (i = 0; i < s->n_producers; i++)
		if (s->producers[i]->machine_id != 0 &&
		    s->producers[i]->machine_name != NULL)
			nearest_offer(&n, s->producers[i]->machine_name);
	return nearest_best(&n);
}

static void
check_machine(struct saying *say_to, const service_state *s,
    const char *machine)
{
	const char *meant;
	char text[512];

	if (glob_is_pattern(machine) && (s->tracing_service_version == NULL ||
	    strncmp(s->tracing_service_version, "Tributary", 9) != 0)) {
		snprintf(text, sizeof(text), "this collector is none of "
		    "Tributary's and takes \"%.80s\" for a name, not for a "
		    "pattern: name each machine", machine);
		say(say_to, text);
		return;
	}
	if (is_connected(s, machine))
		return;
	if ((meant = nearest_machine(s, machine)) != NULL)
		snprintf(text, sizeof(text), "no machine called \"%.80s\" has a "
		    "producer here now; did you mean \"%.80s\"?", machine,
		    meant);
	else
		snprintf(text, sizeof(text), "no machine called \"%.80s\" has "
		    "a producer here now; it is recorded once it connects "
		    "(tributary machines lists the machines that do)", machine);
	say(say_to, text);
}

/* Each name once, however many data sources have it. */
static void
check_machines(struct saying *say_to, const service_state *s,
    const trace_config *config)
{
	const data_source *ds, *before;
	size_t i, j, k, m;
	bool seen;

	for (i = 0; i < config->n_data_sources; i++) {
		ds = config->data_sources[i];
		for (j = 0; j < ds->n_machine_name_filter; j++) {
			seen = false;
			for (k = 0; k < i && !seen; k++) {
				before = config->data_sources[k];
				for (m = 0; m < before->n_machine_name_filter;
				    m++)
					seen |= strcmp(
					    before->machine_name_filter[m],
					    ds->machine_name_filter[j]) == 0;
			}
			if (!seen)
				check_machine(say_to, s,
				    ds->machine_name_filter[j]);
		}
	}
}

void
record_advice(const trace_config *config, const service_state *state,
    record_advice_fn fn, void *arg)
{
	struct saying s = { .fn = fn, .arg = arg };
	size_t i, recorded = 0;
	char text[512];

	check_machines(&s, state, config);
	for (i = 0; i < config->n_data_sources; i++)
		recorded += check(&s, state, config->data_sources[i],
		    config->trace_all_machines);
	if (s.n > RECORD_ADVICE_MAX) {
		snprintf(text, sizeof(text), "and %zu more of that kind",
		    s.n - RECORD_ADVICE_MAX);
		fn(arg, text);
	}
	if (s.n > 0 && recorded == 0)
		fn(arg, "as things are, nothing will be recorded");
}
