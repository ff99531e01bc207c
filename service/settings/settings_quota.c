#include "service/settings/settings_quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/settings/settings.h"

/* 64 GiB a second is no limit. */
#define RATE_KB_MOST      (UINT64_C(1) << 26)
/* A part of a buffer has to be left for data without a guarantee. */
#define GUARANTEED_MOST   90u

static void
free_quota(struct quota_setting *q)
{
	free(q->machine);
	free(q->certificate);
}

void
settings_quota_done(struct settings *s)
{
	size_t i;

	for (i = 0; i < s->n_quotas; i++)
		free_quota(&s->quotas[i]);
	free(s->quotas);
}

static int
refuse_zero(const char *whose, const char *field, char *err, size_t err_size)
{
	snprintf(err, err_size, "%s.%s: 0 is not accepted: it would refuse "
	    "everything; leave the field out for no limit", whose, field);
	return -1;
}

/* whose: "each_machine" or "each_producer", for sentences. */
static int
take_rate(struct allowance_setting *to, const Tributary__Allowance *from,
    const char *whose, char *err, size_t err_size)
{
	if (from->has_kb_per_s && from->kb_per_s == 0)
		return refuse_zero(whose, "kb_per_s", err, err_size);
	if (from->has_burst_kb && from->burst_kb == 0)
		return refuse_zero(whose, "burst_kb", err, err_size);
	if (from->has_burst_kb && !from->has_kb_per_s) {
		snprintf(err, err_size, "%s.burst_kb: it belongs to a "
		    "`kb_per_s`, and there is none", whose);
		return -1;
	}
	if (from->kb_per_s > RATE_KB_MOST || from->burst_kb > RATE_KB_MOST) {
		snprintf(err, err_size, "%s: kb_per_s and burst_kb are at most "
		    "%llu; leave them out for no limit", whose,
		    (unsigned long long)RATE_KB_MOST);
		return -1;
	}
	to->bytes_per_second = from->kb_per_s * 1024;
	to->burst = from->burst_kb * 1024;
	return 0;
}

static int
take_counts(struct allowance_setting *to, const Tributary__Allowance *from,
    const char *whose, char *err, size_t err_size)
{
	const struct {
		const char *name;
		bool has;
		uint32_t value;
		uint32_t *slot;
	} rows[] = {
		{ "max_producers", from->has_max_producers,
		    from->max_producers, &to->max_producers },
		{ "max_connections", from->has_max_connections,
		    from->max_connections, &to->max_connections },
		{ "max_data_sources", from->has_max_data_sources,
		    from->max_data_sources, &to->max_data_sources },
		{ "max_sequences", from->has_max_sequences,
		    from->max_sequences, &to->max_sequences },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].has && rows[i].value == 0)
			return refuse_zero(whose, rows[i].name, err, err_size);
		*rows[i].slot = rows[i].value;
	}
	return 0;
}

static int
take_allowance(struct allowance_setting *to, const Tributary__Allowance *from,
    const char *whose, char *err, size_t err_size)
{
	if (from == NULL)
		return 0;
	if (take_rate(to, from, whose, err, err_size) != 0)
		return -1;
	return take_counts(to, from, whose, err, err_size);
}

static int
check(const struct settings *s, const Tributary__Quota *q, char *err,
    size_t err_size)
{
	const Tributary__Allowance *p = q->each_producer;

	if ((q->machine != NULL && *q->machine == '\0') ||
	    (q->certificate != NULL && *q->certificate == '\0')) {
		snprintf(err, err_size, "an empty `machine` or `certificate` "
		    "fits none; leave it out, or write \"*\"");
		return -1;
	}
	if (p != NULL && (p->has_max_producers || p->has_max_connections)) {
		snprintf(err, err_size, "each_producer: max_producers and "
		    "max_connections are a machine's; put them into "
		    "each_machine");
		return -1;
	}
	if (q->has_over && q->over != TRIBUTARY__QUOTA__OVER__HOLD &&
	    q->over != TRIBUTARY__QUOTA__OVER__DROP) {
		snprintf(err, err_size, "over: OVER_UNSPECIFIED is none: it is "
		    "HOLD or DROP");
		return -1;
	}
	if (q->guaranteed_buffer_percent > GUARANTEED_MOST) {
		snprintf(err, err_size, "guaranteed_buffer_percent is at most "
		    "%u: new chunks need room", GUARANTEED_MOST);
		return -1;
	}
	if (s->n_quotas >= SETTINGS_QUOTAS_MAX) {
		snprintf(err, err_size, "more than %u quotas",
		    SETTINGS_QUOTAS_MAX);
		return -1;
	}
	return 0;
}

int
settings_add_quota(struct settings *s, const Tributary__Quota *q, char *err,
    size_t err_size)
{
	struct quota_setting to = {
		.drop = q->has_over && q->over == TRIBUTARY__QUOTA__OVER__DROP,
		.guaranteed_percent = q->has_guaranteed_buffer_percent ?
		    q->guaranteed_buffer_percent : QUOTA_GUARANTEED_PERCENT,
	};
	struct quota_setting *grown;

	if (check(s, q, err, err_size) != 0 ||
	    take_allowance(&to.each_machine, q->each_machine, "each_machine",
		err, err_size) != 0 ||
	    take_allowance(&to.each_producer, q->each_producer,
		"each_producer", err, err_size) != 0)
		return -1;
	grown = reallocarray(s->quotas, s->n_quotas + 1, sizeof(*grown));
	if (grown == NULL)
		goto fail;
	s->quotas = grown;
	if ((q->machine != NULL &&
	    (to.machine = strdup(q->machine)) == NULL) ||
	    (q->certificate != NULL &&
	    (to.certificate = strdup(q->certificate)) == NULL))
		goto fail;
	s->quotas[s->n_quotas++] = to;
	return 0;

fail:
	free_quota(&to);
	snprintf(err, err_size, "no memory");
	return -1;
}
