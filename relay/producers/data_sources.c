#include <stdlib.h>
#include <string.h>

#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"

static void
source_free(struct local_source *ds)
{
	if (ds == NULL)
		return;
	source_descriptor_done(&ds->descriptor);
	free(ds);
}

struct local_source *
local_find_source(struct local *l, const char *name, size_t len)
{
	struct local_source *ds;

	TAILQ_FOREACH(ds, &l->sources, link)
		if (source_descriptor_is_named(&ds->descriptor, name, len))
			return ds;
	return NULL;
}

const char *
local_register(void *owner, const uint8_t *descriptor, size_t len)
{
	struct local *l = owner;
	const struct relay_limits *lim = &l->owner->settings->limits;
	struct local_source *ds;

	if (l->n_sources >= lim->max_data_sources_per_producer)
		return "too many data sources: "
		       "limits.max_data_sources_per_producer is reached";
	if (len > LINK_MESSAGE_MAX)
		return "the descriptor is too long";
	if (l->descriptor_bytes + len > SOURCE_DESCRIPTORS_BYTES_MAX)
		return "the descriptors of this producer are too long together";
	if ((ds = calloc(1, sizeof(*ds))) == NULL)
		return "out of memory";
	if (source_descriptor_read(&ds->descriptor, descriptor, len) != 0) {
		source_free(ds);
		return "data_source_descriptor does not parse";
	}
	if (ds->descriptor.name[0] == '\0' ||
	    strlen(ds->descriptor.name) > lim->max_name_bytes) {
		source_free(ds);
		return "data source name is empty or longer than "
		       "limits.max_name_bytes";
	}
	/* Two sources may have one name. */
	TAILQ_INSERT_TAIL(&l->sources, ds, link);
	l->n_sources++;
	l->descriptor_bytes += len;
	local_put(l, LINK_UP_REGISTER_SOURCE, ds->descriptor.encoded,
	    ds->descriptor.len);
	return NULL;
}

void
local_update(void *owner, const uint8_t *descriptor, size_t len)
{
	struct local *l = owner;
	struct local_source *ds = NULL;
	size_t others, n;
	const char *name;

	name = source_descriptor_name(descriptor, len, &n);
	if (name != NULL)
		ds = local_find_source(l, name, n);
	if (ds == NULL || len > LINK_MESSAGE_MAX)
		return;
	others = l->descriptor_bytes - ds->descriptor.len;
	if (others + len > SOURCE_DESCRIPTORS_BYTES_MAX ||
	    (len == ds->descriptor.len &&
	    memcmp(ds->descriptor.encoded, descriptor, len) == 0) ||
	    source_descriptor_read(&ds->descriptor, descriptor, len) != 0)
		return;
	l->descriptor_bytes = others + len;
	local_put(l, LINK_UP_UPDATE_SOURCE, ds->descriptor.encoded,
	    ds->descriptor.len);
}

static void
source_drop(struct local *l, struct local_source *ds)
{
	TAILQ_REMOVE(&l->sources, ds, link);
	l->n_sources--;
	l->descriptor_bytes -= ds->descriptor.len;
	source_free(ds);
}

void
local_unregister(void *owner, const char *name, size_t len)
{
	struct local *l = owner;
	struct local_source *ds = local_find_source(l, name, len);
	struct local_instance *i, *next;

	if (ds == NULL)
		return;
	/* Instances of the source end unacknowledged, as in the collector. */
	TAILQ_FOREACH_SAFE(i, &l->instances, link, next)
		if (strcmp(i->name, ds->descriptor.name) == 0)
			local_instance_free(l, i);
	local_put(l, LINK_UP_UNREGISTER_SOURCE, name, len);
	source_drop(l, ds);
}

void
local_free_sources(struct local *l)
{
	struct local_source *ds;

	while ((ds = TAILQ_FIRST(&l->sources)) != NULL)
		source_drop(l, ds);
}
