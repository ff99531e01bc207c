/*
 * instance: a data source of a producer, switched on by a session; its way from
 * SetupDataSource to its last acknowledgement.
 */
#ifndef SERVICE_SESSION_INSTANCE_H
#define SERVICE_SESSION_INSTANCE_H

#include <stdbool.h>

#include "service/config/config.h"
#include "service/model/model.h"
#include "transport/base/compiler.h"

/* Whether a source of the config selects ds (name, filters, machine). */
bool instance_matches(const struct session *s,
    const struct config_data_source *want, const struct data_source *ds);
/*
 * Whether a source of the config that writes to its buffer of this place may be
 * one of p's (all but the name).
 */
bool instance_may_write(const struct session *s, uint32_t buffer,
    const struct producer *p);

/*
 * Instances of one producer in all sessions: bounds what a source that is
 * registered often can cost sessions that ask for it often.
 */
#define INSTANCES_PER_PRODUCER 4096u

/*
 * Makes an instance, which the session owns, and sends SetupDataSource (before
 * it SetupTracing, once a producer).  NULL: no memory or descriptors, of which
 * the session is warned, or INSTANCES_PER_PRODUCER is reached; either is
 * counted in service_counters.instances_refused.
 */
struct ds_instance *instance_new(struct session *s,
    const struct config_data_source *want, struct data_source *ds) MUST_CHECK;
/* Takes it off its session and producer, and frees it; sends nothing. */
void instance_free(struct ds_instance *i);

/* Sends StartDataSource to one that is CONFIGURED. */
void instance_start(struct ds_instance *i);
/* Sends StopDataSource unless stopped or stopping already. */
void instance_stop(struct ds_instance *i);
/*
 * NotifyDataSourceStarted and NotifyDataSourceStopped of the producer.  A stop
 * counts in any state, a start only while STARTING.
 */
void instance_ack_started(struct ds_instance *i);
void instance_ack_stopped(struct ds_instance *i);
/* Counts one that is STOPPING as stopped: no acknowledgement is awaited. */
void instance_give_up(struct ds_instance *i);
/*
 * Stops and frees it, as its producer ended or unregistered the source.  A
 * session that waited only for it ends, and frees its other instances, too.
 */
void instance_producer_gone(struct ds_instance *i);

/*
 * Sends ClearIncrementalState for the instances of s that p has and that handle
 * it.  False: there are none.
 */
bool instance_clear_state(const struct session *s, struct producer *p);

/* Acts on each instance of s that p has.  False: it has none. */
bool instance_each(const struct session *s, struct producer *p,
    void (*act)(struct ds_instance *i));

#endif /* SERVICE_SESSION_INSTANCE_H */
