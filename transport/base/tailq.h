/*
 * tailq: the walk that allows removal, which glibc's sys/queue.h lacks.
 */
#ifndef TRANSPORT_BASE_TAILQ_H
#define TRANSPORT_BASE_TAILQ_H

#include <sys/queue.h>

/* The body may remove and free var, but not next. */
#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(var, head, field, next)                            \
	for ((var) = TAILQ_FIRST(head);                                       \
	    (var) != NULL && ((next) = TAILQ_NEXT(var, field), 1);            \
	    (var) = (next))
#endif

#endif /* TRANSPORT_BASE_TAILQ_H */
