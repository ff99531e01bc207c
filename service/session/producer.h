/*
 * producer: a connected producer: its data sources and its shared memory.
 *
 * Made by the producer port at InitializeConnection, ended when its connection
 * ends.  Instances are made and owned by sessions (instance.h).
 */
#ifndef SERVICE_SESSION_PRODUCER_H
#define SERVICE_SESSION_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/model/model.h"
#include "transport/base/compiler.h"

struct producer_hello {
	const char *name;        /* copied */
	const char *sdk_version; /* copied; may be NULL */
	int32_t uid;
	int32_t pid;
	struct machine *machine; /* the producer refers to it */
	/* Its own name for its machine, copied; NULL: the machine's name. */
	const char *machine_name;
	uint64_t peer;           /* its peer_count_key() */
	bool own;                /* the kernel says: of the daemon's own user */
	bool emulated;
	bool linked;             /* made and ended by a link */
	bool elsewhere;          /* perhaps on other clocks than ours */
	bool scrape;
	uint32_t shm_size_hint;
	uint32_t page_size_hint;
	struct shm *shm;         /* the producer's own, or NULL */
};

/*
 * Takes over hello->shm on success.  NULL: a limit or no memory (*why says);
 * hello->shm is still the caller's.  ops and port are called until
 * producer_gone(), which ends the producer.
 */
struct producer *producer_new(struct service *s,
    const struct producer_hello *hello, const struct producer_ops *ops,
    void *port, const char **why) MUST_CHECK;
/* Changes the state.  Only producer_gone() sets GONE. */
void producer_set_state(struct producer *p, enum producer_state state);

/*
 * Ends a producer whose connection ended: its memory is scraped, its instances
 * count as stopped, flushes no longer wait for it.  It is freed now, or by
 * producers_reap() once the files that have to catch up first have done so; the
 * caller uses p no more, and its port is not called any more.
 */
void producer_gone(struct producer *p);
/*
 * Frees the producers that are GONE and whose memory can now be scraped: a file
 * has caught up a little, or a session is gone.
 */
void producers_reap(struct service *s);

/*
 * descriptor: encoded DataSourceDescriptor (copied).  The same name may be
 * registered several times: each registration gets instances of its own.
 * Running sessions that ask for the name get an instance.  NULL on success,
 * else the sentence for RegisterDataSourceResponse.error.
 */
const char *producer_register(struct producer *p, const uint8_t *descriptor,
    size_t len) MUST_CHECK;
/* Replaces the descriptor of a registered source; unknown names are ignored. */
void producer_update(struct producer *p, const uint8_t *descriptor,
    size_t len);
/* Instances of the source count as stopped.  Unknown names are ignored. */
void producer_unregister(struct producer *p, const char *name, size_t len);

/*
 * Makes shared memory where the producer brought none, and sends SetupTracing;
 * does nothing the second time.  -1: no memory or descriptors (errno).
 */
int producer_set_up_tracing(struct producer *p, uint32_t want_shm_kb,
    uint32_t want_page_kb) MUST_CHECK;

/* The first registered source of this name; NULL: none. */
struct data_source *producer_find_data_source(struct producer *p,
    const char *name, size_t len);
struct ds_instance *producer_find_instance(struct producer *p, uint64_t id);

/*
 * The machine's name as this producer knows it: relays on one kernel, as in two
 * containers, have a name each.  NULL: unknown.
 */
const char *producer_machine_name(const struct producer *p);

#endif /* SERVICE_SESSION_PRODUCER_H */
