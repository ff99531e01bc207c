/*
 * port_internal: state of a port, shared by port.c (the connection),
 * port_machine.c (this machine), port_sources.c (data sources), port_commands.c
 * (what the service says) and port_commit.c (what it is told).
 */
#ifndef CLIENT_TRACING_PORT_PORT_INTERNAL_H
#define CLIENT_TRACING_PORT_PORT_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "client/tracing/memory/chunk_memory.h"
#include "client/tracing/port/port.h"
#include "client/tracing/port/port_wire.h"
#include "client/tracing/source/endpoint.h"
#include "client/tracing/source/registry.h"
#include "transport/clock/clock_exchange.h"
#include "transport/socket/addr.h"
#include "transport/wire/pb_writer.h"

/* Backoff between attempts to connect, before jitter of a quarter. */
#define PORT_RETRY_FIRST_MS 100u
#define PORT_RETRY_LAST_MS  10000u
/* A service that does not answer so long is left. */
#define PORT_ANSWER_MS 10000u
/* Where the program makes the connection: a tunnel takes its time. */
#define PORT_TUNNEL_MS 60000u
/*
 * Back-pressure under emulation: chunks stay in the memory while more bytes
 * than this wait for the socket; the writers' policies decide then.
 */
#define PORT_QUEUED_PAUSE (256u * 1024u)

#define PORT_REFUSED 32u

/* Methods of the ProducerPort; their names are in port.c, in this order. */
enum port_method {
	PORT_INITIALIZE,
	PORT_REGISTER_SOURCE,
	PORT_UPDATE_SOURCE,
	PORT_COMMIT,
	PORT_REGISTER_WRITER,
	PORT_UNREGISTER_WRITER,
	PORT_STARTED,
	PORT_STOPPED,
	PORT_TRIGGER,
	PORT_COMMANDS,
	PORT_SYNC,
	PORT_INIT_MACHINE, /* ours: where the service offers it */
	PORT_SYNC_CLOCK,   /* ours */
	PORT_METHODS,
};

enum port_state {
	PORT_WAITING,      /* no socket; until due_ms */
	PORT_CONNECTING,   /* the socket becomes writable, or due_ms comes */
	PORT_BINDING,      /* BindService was sent; until due_ms */
	PORT_INITIALIZING, /* InitializeConnection was sent; until due_ms */
	PORT_READY,        /* sources are being registered, or are */
};

/* How far the service is away. */
enum port_reach {
	PORT_REACH_DIRECT,  /* its kernel is ours; descriptors can be passed */
	PORT_REACH_NETWORK, /* it sees where the connection comes from */
	PORT_REACH_TUNNEL,  /* it sees a tunnel's end in our place */
};

/* A Flush whose instances are not all done. */
struct port_flush {
	TAILQ_ENTRY(port_flush) link;
	uint64_t request;
	size_t waits_for; /* instances */
};

/* tributary_stop_done() and _flush_done(), on their way to the port's thread. */
struct port_note {
	STAILQ_ENTRY(port_note) link;
	struct tributary_instance *instance;
	uint64_t flush_id; /* 0: stopped */
};

/* A port_flush() that waits for the service's answer to Sync. */
struct port_waiter {
	STAILQ_ENTRY(port_waiter) link;
	void (*done)(void *arg, bool ok);
	void *arg;
};

struct port {
	struct endpoint endpoint; /* first: instances know it by this */
	struct tributary_options options; /* strings are owned */
	struct addr address;
	/* A name's address that is tried next; whether there is one. */
	unsigned address_at;
	bool address_left;
	int wake_fd;
	int folder_fd; /* inotify on the socket's folder; -1: none */

	enum port_state state;
	uint64_t due_ms;
	unsigned failures; /* in a row */
	enum port_reach reach;
	struct port_wire wire;

	/* From the memory's making until the connection ends. */
	struct chunk_memory *memory;
	bool provided; /* the service may take our memory */
	bool emulated; /* the service does not see it */

	unsigned n_registered; /* sources 0..n-1 */
	unsigned registering; /* replies that are to come */
	bool settled; /* all sources were registered once: tell_state() said so */

	/* While the service measures this machine's clocks. */
	bool measures_clocks;
	int jumps_fd; /* -1: none */
	struct clock_exchange clocks;

	LIST_HEAD(, tributary_instance) instances;
	/* Ids of instances that were refused last: not to be set up again. */
	uint64_t refused[PORT_REFUSED];
	unsigned n_refused; /* ever */
	TAILQ_HEAD(, port_flush) flushes;
	STAILQ_HEAD(, port_note) notes; /* under the registry's lock */
	STAILQ_HEAD(, port_waiter) waiters; /* in the order of their Syncs */
};

/* ---- port.c ---- */

void port_log(struct port *p, enum tributary_log_level level, const char *fmt,
    ...) PRINTF_LIKE(3, 4);
/* Ends the connection and its instances; why: a clause. */
void port_disconnect(struct port *p, const char *why);
/* Says that the service is connected, once, when all sources are registered. */
void port_settle(struct port *p);
uint64_t port_now_ms(void); /* CLOCK_MONOTONIC */
/* Calls a method with what w holds, and empties it. */
void port_call(struct port *p, enum port_method m, struct pb_writer *w);
void port_call_id(struct port *p, enum port_method m, uint64_t id);
/* shm: owned from now on, also on failure. */
bool port_use_memory(struct port *p, struct shm *shm);

/* ---- port_machine.c ---- */

/* Appends a frame that says who we are, where the service cannot know. */
void port_put_identity(struct port *p, struct pb_writer *w);
/* Describes the machine to a service that takes it; its answer: */
void port_introduce_machine(struct port *p);
void port_machine_introduced(struct port *p, const struct port_event *e);
void port_clock_replied(struct port *p, const struct port_event *e);
/* Begins a measurement that is due; readable: jumps_fd is. */
void port_clocks_run(struct port *p, bool readable);
/* false: none will be due before something comes from the service. */
bool port_clocks_due(const struct port *p, uint64_t *due_ms);
void port_clocks_end(struct port *p);

/* ---- port_sources.c ---- */

/* The reply to one RegisterDataSource. */
void port_source_registered(struct port *p, const struct port_event *e);

/* ---- port_commands.c ---- */

/* One GetAsyncCommandResponse. */
void port_command(struct port *p, const uint8_t *data, size_t len);
/* Notes of other threads. */
void port_take_notes(struct port *p);
void port_stop_done(struct endpoint *e, struct tributary_instance *i);
void port_flush_done(struct endpoint *e, struct tributary_instance *i,
    uint64_t flush_id);
/* Ends an instance: hands over, tells the service, frees. */
void port_end_instance(struct port *p, struct tributary_instance *i);

/* ---- port_commit.c ---- */

/*
 * Tells the service what is queued in the memory.  all: also beyond
 * PORT_QUEUED_PAUSE.
 */
void port_commit(struct port *p, bool all);
/* As port_commit() of all, and says that this flush is done. */
void port_commit_flush(struct port *p, uint64_t request);

#endif /* CLIENT_TRACING_PORT_PORT_INTERNAL_H */
