/*
 * event_table: the events of the kernel that have a message and a field of
 * their own in FtraceEvent.  All others are generic ones.
 *
 * Pure.  Numbers and types are the schema's: the table is event_groups.h beside
 * the descriptors that protobuf-c makes of protos/ftrace_event.proto.
 */
#ifndef CLIENT_FTRACE_EVENTS_EVENT_TABLE_H
#define CLIENT_FTRACE_EVENTS_EVENT_TABLE_H

#include <protobuf-c/protobuf-c.h>

/*
 * The field of FtraceEvent that holds events of this name and group; the
 * descriptor of its message is ->descriptor.  NULL: it is not well known.
 */
const ProtobufCFieldDescriptor *event_table_find(const char *group,
    const char *name);

/* The group of a well-known event, or NULL. */
const char *event_table_group(const char *name);

#endif /* CLIENT_FTRACE_EVENTS_EVENT_TABLE_H */
