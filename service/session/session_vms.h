/*
 * session_vms: which programs of producers (ProtoVM) a session runs, and what its
 * consumer is told of those that it does not.
 *
 * A data source of the config asks for them by protovm_config, and producers
 * offer them in their descriptors.  What they do is in buffer_vms.h.
 */
#ifndef SERVICE_SESSION_SESSION_VMS_H
#define SERVICE_SESSION_SESSION_VMS_H

struct config_data_source;
struct data_source;
struct session;

/* KiB of a state where memory_limit_kb is left out, and at most. */
#define SESSION_VM_KB_DEFAULT 1024u
#define SESSION_VM_KB_MAX     65536u

/*
 * Has the packets of ds's producer in the buffer applied to its program, where
 * want asks for that and ds offers one; warns of a program that is not run.  To
 * be called before the producer writes.  The memory that states may take counts
 * as the buffer's.
 */
void session_vms_add(struct session *s, const struct config_data_source *want,
    const struct data_source *ds);
/*
 * Warns, at the end of a session, of data sources whose producers offered no
 * program, and of packets that could not be applied.
 */
void session_vms_warn(struct session *s);

#endif /* SERVICE_SESSION_SESSION_VMS_H */
