#include "client/ftrace/events/event_table.h"

#include <stdbool.h>
#include <string.h>

#include "client/ftrace/events/event_groups.h"
#include "protos/ftrace_event.pb-c.h"

static bool
has(const struct event_group *g, const char *name)
{
	const char *at = g->events;
	size_t len = strlen(name);

	if (len == 0 || strchr(name, ' ') != NULL)
		return false;
	while ((at = strstr(at, name)) != NULL) {
		if ((at == g->events || at[-1] == ' ') &&
		    (at[len] == ' ' || at[len] == '\0'))
			return true;
		at += len;
	}
	return false;
}

const char *
event_table_group(const char *name)
{
	const struct event_group *groups;
	size_t i, n;

	groups = event_groups(&n);
	for (i = 0; i < n; i++)
		if (has(&groups[i], name))
			return groups[i].name;
	return NULL;
}

const ProtobufCFieldDescriptor *
event_table_find(const char *group, const char *name)
{
	const char *known = event_table_group(name);

	if (known == NULL || strcmp(known, group) != 0)
		return NULL;
	return protobuf_c_message_descriptor_get_field_by_name(
	    &perfetto__protos__ftrace_event__descriptor, name);
}
