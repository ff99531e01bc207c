/*
 * onlookers: the observers of a collector's sessions (session_events.h), in the
 * order in which events are told to them.
 */
#ifndef SERVICE_ONLOOKERS_ONLOOKERS_H
#define SERVICE_ONLOOKERS_ONLOOKERS_H

struct session_observer;

/* Ends with NULL. */
extern const struct session_observer *const onlookers[];

#endif /* SERVICE_ONLOOKERS_ONLOOKERS_H */
