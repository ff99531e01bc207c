#include <stdlib.h>
#include <string.h>

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"
#include "relay/producers/producer.h"
#include "relay/producers/producers_internal.h"
#include "relay/settings/settings.h"

static void
source_free(struct local_source *ds)
{
	if (ds == NULL)
		return;
	free(ds->name);
	free(ds->descriptor);
	free(ds);
}

/* What the relay itself needs to know of a descriptor. */
static int
read_descriptor(struct local_source *ds, const uint8_t *descriptor, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	const uint8_t *name = NULL;
	size_t name_len = 0;
	char *name_copy;
	uint8_t *copy;

	ds->notifies_stop = ds->no_flush = false;
	pb_init(&r, descriptor, len);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case DataSourceDescriptor_name:
			if (f.wire != PB_BYTES)
				return -1;
			name = f.data;
			name_len = f.len;
			break;
		case DataSourceDescriptor_will_notify_on_stop:
			ds->notifies_stop = f.value != 0;
			break;
		case DataSourceDescriptor_no_flush:
			ds->no_flush = f.value != 0;
			break;
		default:
			break;
		}
	}
	if (r.bad)
		return -1;
	name_copy = name != NULL ? strndup((const char *)name, name_len) :
	    strdup("");
	copy = malloc(len + 1);
	if (name_copy == NULL || copy == NULL) {
		free(name_copy);
		free(copy);
		return -1;
	}
	if (len > 0)
		memcpy(copy, descriptor, len);
	free(ds->name);
	free(ds->descriptor);
	ds->name = name_copy;
	ds->descriptor = copy;
	ds->len = len;
	return 0;
}

struct local_source *
local_find_source(struct local *l, const char *name, size_t len)
{
	struct local_source *ds;

	TAILQ_FOREACH(ds, &l->sources, link)
		if (strlen(ds->name) == len && memcmp(ds->name, name, len) == 0)
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
	if (l->descriptor_bytes + len > LOCAL_DESCRIPTOR_BYTES_MAX)
		return "the descriptors of this producer are too long together";
	if ((ds = calloc(1, sizeof(*ds))) == NULL)
		return "out of memory";
	if (read_descriptor(ds, descriptor, len) != 0) {
		source_free(ds);
		return "data_source_descriptor does not parse";
	}
	if (ds->name[0] == '\0' || strlen(ds->name) > lim->max_name_bytes) {
		source_free(ds);
		return "data source name is empty or longer than "
		       "limits.max_name_bytes";
	}
	/* The same name twice is legal, and two sources. */
	TAILQ_INSERT_TAIL(&l->sources, ds, link);
	l->n_sources++;
	l->descriptor_bytes += len;
	local_put(l, LINK_UP_REGISTER_SOURCE, ds->descriptor, ds->len);
	return NULL;
}

void
local_update(void *owner, const uint8_t *descriptor, size_t len)
{
	struct local *l = owner;
	struct local_source *ds = NULL;
	struct pb_reader r;
	struct pb_field f;
	size_t others;

	pb_init(&r, descriptor, len);
	while (pb_next(&r, &f))
		if (f.number == DataSourceDescriptor_name && f.wire == PB_BYTES)
			ds = local_find_source(l, (const char *)f.data, f.len);
	if (r.bad || ds == NULL || len > LINK_MESSAGE_MAX)
		return;
	others = l->descriptor_bytes - ds->len;
	if (others + len > LOCAL_DESCRIPTOR_BYTES_MAX ||
	    (len == ds->len && memcmp(ds->descriptor, descriptor, len) == 0) ||
	    read_descriptor(ds, descriptor, len) != 0)
		return;
	l->descriptor_bytes = others + len;
	local_put(l, LINK_UP_UPDATE_SOURCE, ds->descriptor, ds->len);
}

static void
source_drop(struct local *l, struct local_source *ds)
{
	TAILQ_REMOVE(&l->sources, ds, link);
	l->n_sources--;
	l->descriptor_bytes -= ds->len;
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
	/* Its instances are over, without a word: as with any service. */
	TAILQ_FOREACH_SAFE(i, &l->instances, link, next)
		if (strcmp(i->name, ds->name) == 0)
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
