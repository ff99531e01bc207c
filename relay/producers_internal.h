/*
 * producers_internal: what the producers have in common, for producers*.c and
 * local_*.c.
 */
#ifndef RELAY_PRODUCERS_INTERNAL_H
#define RELAY_PRODUCERS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/log.h"
#include "transport/rpc_host.h"
#include "relay/local.h"
#include "relay/producers.h"

struct producers {
	struct loop *loop;
	const struct relay_settings *settings; /* borrowed */
	int state_dirfd;                       /* borrowed; -1: none */
	struct upward up;
	uint32_t (*new_channel)(void *arg);
	void *channel_arg;
	struct rpc_service service;
	struct rpc_guard guard;
	struct local_list locals; /* those that are initialized */
	size_t n_locals;
	size_t n_connections;
	uint64_t shm_bytes;       /* of all together */
	bool open;                /* new ones are announced at once */
	uint64_t last_instance;
	uint64_t last_flush;
	uint64_t flush_patience_ms;
	struct log_limit refusals;
};

#endif /* RELAY_PRODUCERS_INTERNAL_H */
