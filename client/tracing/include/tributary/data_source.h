/*
 * data_source: packets of a program's own.
 *
 * A data source is registered once; each session that asks for it gets an
 * instance, with its own config and its own context.  Instances write
 * TracePackets, from any thread, with a struct tributary_packet.
 */
#ifndef TRIBUTARY_DATA_SOURCE_H
#define TRIBUTARY_DATA_SOURCE_H

#include <tributary/tributary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sources of a program, track events among them; instances of a source. */
#define TRIBUTARY_SOURCES_MAX   64
#define TRIBUTARY_INSTANCES_MAX 32

struct tributary_source;
struct tributary_instance;

/* Behaviour of a writer when the memory shared with the service is full. */
enum tributary_full_policy {
	/* As the config of the session says (buffer_exhausted_policy), else: */
	TRIBUTARY_FULL_DEFAULT = 0,
	/* the packet is dropped, counted, and the next one says so. */
	TRIBUTARY_FULL_DROP = 1,
	/* The thread waits up to TRIBUTARY_STALL_MS, then drops. */
	TRIBUTARY_FULL_STALL = 2,
	/*
	 * The thread waits as long as the service is connected.  Not for signal
	 * handlers that may interrupt malloc(): the library's thread, for which
	 * it waits, may need what was interrupted.
	 */
	TRIBUTARY_FULL_WAIT = 3,
	/* After TRIBUTARY_STALL_MS the program ends by abort(). */
	TRIBUTARY_FULL_ABORT = 4,
};
#define TRIBUTARY_STALL_MS 1000

/*
 * Callbacks come from the library's thread (enum tributary_loop), one at a
 * time, in this order for an instance: setup, start, (flush |
 * clear_incremental_state)*, stop, destroy.  Each may be NULL.  They may write
 * packets.
 */
struct tributary_source_ops {
	size_t size; /* of this struct */
	/*
	 * Encoded DataSourceConfig, borrowed for the call.  *context is the
	 * instance's from now on.  False: the instance is refused, nothing
	 * else is called for it.
	 */
	bool (*setup)(struct tributary_instance *i, const void *config,
	    size_t len, void *arg, void **context);
	void (*start)(struct tributary_instance *i, void *context);
	/* True: done; false: tributary_flush_done(i, flush_id) follows. */
	bool (*flush)(struct tributary_instance *i, void *context,
	    uint64_t flush_id);
	void (*clear_incremental_state)(struct tributary_instance *i,
	    void *context);
	/*
	 * True: stopped; false: tributary_stop_done() follows, from any thread,
	 * and the instance may write until then.
	 */
	bool (*stop)(struct tributary_instance *i, void *context);
	/* No thread of the library uses context any more. */
	void (*destroy)(struct tributary_instance *i, void *context);
};

struct tributary_source_options {
	size_t size; /* of this struct */
	const char *name;
	enum tributary_full_policy full;
	bool no_flush; /* the service need not ask the source to flush */
	/* More fields of its DataSourceDescriptor, encoded; copied. */
	const void *descriptor;
	size_t descriptor_len;
	void *arg; /* of setup */
	/* A session that wants TRIBUTARY_FULL_ABORT gets TRIBUTARY_FULL_STALL. */
	bool no_abort;
};

/*
 * ops is borrowed for ever.  NULL: no memory, TRIBUTARY_SOURCES_MAX, a name
 * that is registered already, no name, or options of the size 0.
 */
TRIBUTARY_API struct tributary_source *tributary_source_add(
    const struct tributary_source_options *options,
    const struct tributary_source_ops *ops);

/*
 * Replaces options->descriptor, and tells the service; copied.  Any thread.
 * False: no memory.
 */
TRIBUTARY_API bool tributary_source_describe(struct tributary_source *s,
    const void *descriptor, size_t len);

TRIBUTARY_API void tributary_flush_done(struct tributary_instance *i,
    uint64_t flush_id);
TRIBUTARY_API void tributary_stop_done(struct tributary_instance *i);
/* The session's id, as the service numbers it; 0: it did not say. */
TRIBUTARY_API uint64_t tributary_instance_session(
    const struct tributary_instance *i);
/* Packets that its writers dropped so far. */
TRIBUTARY_API uint64_t tributary_instance_dropped(
    const struct tributary_instance *i);

/*
 * Whether any instance of the source is started; costs one load, so that a
 * program can ask before it prepares a packet.
 */
TRIBUTARY_API bool tributary_source_enabled(const struct tributary_source *s);

/*
 * Calls write once for each started instance of the source, with a packet of
 * the calling thread's sequence to fill; written when the call returns.  A
 * packet that is left empty is not written.
 *
 * first: this sequence's incremental state begins anew (or begins) with this
 * packet, which is marked so if write calls tributary_packet_clears_state().
 */
struct tributary_packet;
typedef void (*tributary_write_fn)(struct tributary_packet *p,
    struct tributary_instance *i, void *context, bool first, void *arg);
TRIBUTARY_API void tributary_source_write(struct tributary_source *s,
    tributary_write_fn write, void *arg);
/*
 * Writes a packet of one instance, from its callbacks, or between start and stop of
 * an instance that the caller keeps alive.  False: the packet was dropped.
 */
TRIBUTARY_API bool tributary_instance_write(struct tributary_instance *i,
    tributary_write_fn write, void *arg);

/*
 * Fields of a packet, by the numbers of trace_packet.proto.  Nested messages
 * are begun and ended in pairs; their lengths need not be known.  A packet
 * may be as large as the service takes (64 MiB).
 */
TRIBUTARY_API void tributary_put_uint(struct tributary_packet *p,
    uint32_t field, uint64_t v);
TRIBUTARY_API void tributary_put_int(struct tributary_packet *p,
    uint32_t field, int64_t v);
TRIBUTARY_API void tributary_put_sint(struct tributary_packet *p,
    uint32_t field, int64_t v); /* zigzag */
TRIBUTARY_API void tributary_put_fixed64(struct tributary_packet *p,
    uint32_t field, uint64_t v);
TRIBUTARY_API void tributary_put_fixed32(struct tributary_packet *p,
    uint32_t field, uint32_t v);
TRIBUTARY_API void tributary_put_double(struct tributary_packet *p,
    uint32_t field, double v);
TRIBUTARY_API void tributary_put_float(struct tributary_packet *p,
    uint32_t field, float v);
TRIBUTARY_API void tributary_put_bytes(struct tributary_packet *p,
    uint32_t field, const void *data, size_t len);
TRIBUTARY_API void tributary_put_string(struct tributary_packet *p,
    uint32_t field, const char *s);
/* Encoded fields, as they are. */
TRIBUTARY_API void tributary_put_encoded(struct tributary_packet *p,
    const void *data, size_t len);
TRIBUTARY_API void tributary_begin(struct tributary_packet *p, uint32_t field);
TRIBUTARY_API void tributary_end(struct tributary_packet *p);
/* The packet begins the incremental state of its sequence. */
TRIBUTARY_API void tributary_packet_clears_state(struct tributary_packet *p);
/* The packet cannot be read without the state of its sequence. */
TRIBUTARY_API void tributary_packet_needs_state(struct tributary_packet *p);

#ifdef __cplusplus
}
#endif

#endif /* TRIBUTARY_DATA_SOURCE_H */
