/*
 * track_event: slices, instants and counters on tracks.
 *
 *	TRIBUTARY_CATEGORY(net, "net", "Requests and answers", "");
 *
 *	TRIBUTARY_SLICE(net, "request");               until the end of the block
 *	TRIBUTARY_BEGIN(net, "read", tributary_int("bytes", n));
 *	TRIBUTARY_END(net);
 *	TRIBUTARY_INSTANT(net, "cache miss", tributary_string("key", key));
 *	TRIBUTARY_COUNTER(net, &connections, n);
 *
 * A name is a literal; tributary_name() replaces it by a string of run time.
 * Nothing behind the category is evaluated while no session has enabled it.
 * An event goes to each session that has, on the calling thread's track unless
 * tributary_on() names another.
 */
#ifndef TRIBUTARY_TRACK_EVENT_H
#define TRIBUTARY_TRACK_EVENT_H

#include <tributary/tributary.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Categories ---- */

/* Made by TRIBUTARY_CATEGORY; its members are the library's. */
struct tributary_category {
	uint64_t enabled; /* a bit for each session's instance */
	const char *name;
	const char *description;
	const char *tags;
	struct tributary_category *next;
};

TRIBUTARY_API void tributary_category_add(struct tributary_category *c);
TRIBUTARY_API void tributary_category_remove(struct tributary_category *c);

/*
 * Defines a category, once in a program or library, outside of functions.  tags:
 * separated by commas; sessions leave out categories tagged "slow" or "debug"
 * unless they ask for them.  The category is known as soon as the program, or
 * the library that defines it, is loaded.
 */
#define TRIBUTARY_CATEGORY(id, name, description, tags)                        \
	TRIBUTARY_CATEGORY_DECLARE(id);                                        \
	struct tributary_category tributary_category_##id = { 0, name,         \
	    description, tags, NULL };                                         \
	__attribute__((constructor)) static void                               \
	tributary_category_add_##id(void)                                      \
	{                                                                      \
		tributary_category_add(&tributary_category_##id);              \
	}                                                                      \
	__attribute__((destructor)) static void                                \
	tributary_category_remove_##id(void)                                   \
	{                                                                      \
		tributary_category_remove(&tributary_category_##id);           \
	}                                                                      \
	TRIBUTARY_CATEGORY_DECLARE(id)

/* For headers: the category is defined in another file. */
#define TRIBUTARY_CATEGORY_DECLARE(id)                                         \
	extern struct tributary_category tributary_category_##id

/* Whether any session has enabled the category. */
#define TRIBUTARY_ENABLED(id)                                                  \
	__builtin_expect(__atomic_load_n(                                      \
	    &tributary_category_##id.enabled, __ATOMIC_RELAXED) != 0, 0)

/* ---- Tracks ---- */

enum tributary_track_kind {
	TRIBUTARY_TRACK_SLICES = 0,
	TRIBUTARY_TRACK_COUNTER = 1,
	TRIBUTARY_TRACK_OF_THREAD = 2,
	TRIBUTARY_TRACK_OF_PROCESS = 3,
};

enum tributary_unit {
	TRIBUTARY_UNIT_NONE = 0,
	TRIBUTARY_UNIT_NS = 1,
	TRIBUTARY_UNIT_COUNT = 2,
	TRIBUTARY_UNIT_BYTES = 3,
};

/*
 * A track: a value, made by the functions below; further members may be set
 * before its first use.  The same name, id and parent make the same track, also
 * in other threads.  The name and the parent are borrowed, and used by each
 * event on the track.
 */
struct tributary_track {
	uint64_t uuid;
	const struct tributary_track *parent; /* NULL: at the top */
	const char *name;
	const char *description; /* or NULL */
	int32_t rank;            /* among the parent's tracks; 0: none */
	int32_t tid;             /* of TRIBUTARY_TRACK_OF_THREAD */
	uint8_t kind;            /* enum tributary_track_kind */
	/* Members of counters: */
	uint8_t unit;            /* enum tributary_unit */
	bool incremental;        /* values are differences to the last one */
	int64_t multiplier;      /* of values; 0: 1 */
	const char *unit_name;   /* or NULL */
};

/* The calling thread's, and the process's own track: parents of others. */
TRIBUTARY_API struct tributary_track tributary_thread_track(void);
TRIBUTARY_API const struct tributary_track *tributary_process_track(void);
/* parent NULL: a track of no process, at the top. */
TRIBUTARY_API struct tributary_track tributary_track(const char *name,
    uint64_t id, const struct tributary_track *parent);
TRIBUTARY_API struct tributary_track tributary_counter_track(const char *name,
    enum tributary_unit unit, const struct tributary_track *parent);

/* Renames the calling thread's track in all sessions; copied. */
TRIBUTARY_API void tributary_set_thread_name(const char *name);

/* ---- Arguments of an event ---- */

enum tributary_arg_kind {
	TRIBUTARY_ARG_INT,
	TRIBUTARY_ARG_UINT,
	TRIBUTARY_ARG_BOOL,
	TRIBUTARY_ARG_DOUBLE,
	TRIBUTARY_ARG_POINTER,
	TRIBUTARY_ARG_STRING,
	TRIBUTARY_ARG_DICT,
	TRIBUTARY_ARG_ARRAY,
	TRIBUTARY_ARG_END,
	TRIBUTARY_ARG_ON,
	TRIBUTARY_ARG_AT,
	TRIBUTARY_ARG_NAME,
	TRIBUTARY_ARG_FLOW,
	TRIBUTARY_ARG_FLOW_END,
	TRIBUTARY_ARG_CORRELATION,
	TRIBUTARY_ARG_CORRELATION_STRING,
	TRIBUTARY_ARG_LOCATION,
	TRIBUTARY_ARG_LOG,
	TRIBUTARY_ARG_ENCODED,
};

/* Made by the functions below; pointers are borrowed for the event's call. */
struct tributary_arg {
	uint32_t kind; /* enum tributary_arg_kind */
	uint32_t number;
	const char *name;
	union {
		int64_t i;
		uint64_t u;
		double d;
		const void *p;
	} value;
	size_t len;
};

static inline struct tributary_arg
tributary_arg_of(enum tributary_arg_kind kind, const char *name)
{
	struct tributary_arg a;

	a.kind = (uint32_t)kind;
	a.number = 0;
	a.name = name;
	a.value.u = 0;
	a.len = 0;
	return a;
}

static inline struct tributary_arg
tributary_arg_uint(enum tributary_arg_kind kind, const char *name, uint64_t v)
{
	struct tributary_arg a = tributary_arg_of(kind, name);

	a.value.u = v;
	return a;
}

static inline struct tributary_arg
tributary_arg_pointer(enum tributary_arg_kind kind, const char *name,
    const void *v, size_t len)
{
	struct tributary_arg a = tributary_arg_of(kind, name);

	a.value.p = v;
	a.len = len;
	return a;
}

/*
 * Debug annotations.  name is a literal, or a string that lives as long as the
 * program.  Inside of an array the name is NULL.
 */
static inline struct tributary_arg
tributary_int(const char *name, int64_t v)
{
	return tributary_arg_uint(TRIBUTARY_ARG_INT, name, (uint64_t)v);
}

static inline struct tributary_arg
tributary_uint(const char *name, uint64_t v)
{
	return tributary_arg_uint(TRIBUTARY_ARG_UINT, name, v);
}

static inline struct tributary_arg
tributary_bool(const char *name, bool v)
{
	return tributary_arg_uint(TRIBUTARY_ARG_BOOL, name, v ? 1 : 0);
}

static inline struct tributary_arg
tributary_double(const char *name, double v)
{
	struct tributary_arg a = tributary_arg_of(TRIBUTARY_ARG_DOUBLE, name);

	a.value.d = v;
	return a;
}

static inline struct tributary_arg
tributary_pointer(const char *name, const void *v)
{
	return tributary_arg_uint(TRIBUTARY_ARG_POINTER, name, (uintptr_t)v);
}

/* A string of run time; NULL is shown as "(null)". */
static inline struct tributary_arg
tributary_string(const char *name, const char *v)
{
	return tributary_arg_pointer(TRIBUTARY_ARG_STRING, name,
	    v != NULL ? v : "(null)",
	    __builtin_strlen(v != NULL ? v : "(null)"));
}

static inline struct tributary_arg
tributary_string_n(const char *name, const char *v, size_t len)
{
	return tributary_arg_pointer(TRIBUTARY_ARG_STRING, name, v, len);
}

/* Contains the arguments up to its tributary_end_of(). */
static inline struct tributary_arg
tributary_dict(const char *name)
{
	return tributary_arg_of(TRIBUTARY_ARG_DICT, name);
}

static inline struct tributary_arg
tributary_array(const char *name)
{
	return tributary_arg_of(TRIBUTARY_ARG_ARRAY, name);
}

static inline struct tributary_arg
tributary_end_of(void)
{
	return tributary_arg_of(TRIBUTARY_ARG_END, NULL);
}

/* On another track than the thread's. */
static inline struct tributary_arg
tributary_on(const struct tributary_track *track)
{
	return tributary_arg_pointer(TRIBUTARY_ARG_ON, NULL, track, 0);
}

/* At another time than now; clock_id as in ClockSnapshot, 6: BOOTTIME. */
static inline struct tributary_arg
tributary_at_clock(uint64_t timestamp, uint32_t clock_id)
{
	struct tributary_arg a = tributary_arg_uint(TRIBUTARY_ARG_AT, NULL,
	    timestamp);

	a.number = clock_id;
	return a;
}

static inline struct tributary_arg
tributary_at(uint64_t boottime_ns)
{
	return tributary_at_clock(boottime_ns, 6);
}

/* The event's name; replaces the literal. */
static inline struct tributary_arg
tributary_name(const char *name)
{
	return tributary_arg_pointer(TRIBUTARY_ARG_NAME, NULL, name,
	    __builtin_strlen(name));
}

/*
 * Events of this process with the same flow id are connected by arrows, until
 * the flow's end; the _global ones with those of other processes, too.
 */
TRIBUTARY_API uint64_t tributary_process_uuid(void);

static inline struct tributary_arg
tributary_flow_global(uint64_t id)
{
	return tributary_arg_uint(TRIBUTARY_ARG_FLOW, NULL, id);
}

static inline struct tributary_arg
tributary_flow_end_global(uint64_t id)
{
	return tributary_arg_uint(TRIBUTARY_ARG_FLOW_END, NULL, id);
}

static inline struct tributary_arg
tributary_flow(uint64_t id)
{
	return tributary_flow_global(id ^ tributary_process_uuid());
}

static inline struct tributary_arg
tributary_flow_end(uint64_t id)
{
	return tributary_flow_end_global(id ^ tributary_process_uuid());
}

/* Slices with the same correlation id belong together. */
static inline struct tributary_arg
tributary_correlation(uint64_t id)
{
	return tributary_arg_uint(TRIBUTARY_ARG_CORRELATION, NULL, id);
}

static inline struct tributary_arg
tributary_correlation_string(const char *id)
{
	return tributary_arg_pointer(TRIBUTARY_ARG_CORRELATION_STRING, NULL, id,
	    __builtin_strlen(id));
}

/* Where in the source the event is; file and function are literals. */
static inline struct tributary_arg
tributary_location(const char *file, const char *function, uint32_t line)
{
	struct tributary_arg a = tributary_arg_pointer(TRIBUTARY_ARG_LOCATION,
	    file, function, 0);

	a.number = line;
	return a;
}

#define TRIBUTARY_HERE tributary_location(__FILE__, __func__, __LINE__)

/* The event is a message of a log. */
enum tributary_priority {
	TRIBUTARY_VERBOSE = 2,
	TRIBUTARY_DEBUG = 3,
	TRIBUTARY_INFO = 4,
	TRIBUTARY_WARN = 5,
	TRIBUTARY_ERROR = 6,
	TRIBUTARY_FATAL = 7,
};

static inline struct tributary_arg
tributary_log(enum tributary_priority priority, const char *text)
{
	struct tributary_arg a = tributary_arg_pointer(TRIBUTARY_ARG_LOG, NULL,
	    text, __builtin_strlen(text));

	a.number = (uint32_t)priority;
	return a;
}

/* Encoded fields of TrackEvent, such as extensions, as they are. */
static inline struct tributary_arg
tributary_encoded(const void *data, size_t len)
{
	return tributary_arg_pointer(TRIBUTARY_ARG_ENCODED, NULL, data, len);
}

/* ---- Events ---- */

/* TrackEvent.Type */
enum tributary_event_type {
	TRIBUTARY_SLICE_BEGIN = 1,
	TRIBUTARY_SLICE_END = 2,
	TRIBUTARY_EVENT_INSTANT = 3,
};

/* For the macros below. */
TRIBUTARY_API void tributary_event(const struct tributary_category *c,
    enum tributary_event_type type, const char *name);
TRIBUTARY_API void tributary_event_args(const struct tributary_category *c,
    enum tributary_event_type type, const char *name,
    const struct tributary_arg *args, size_t n);
TRIBUTARY_API void tributary_count(const struct tributary_category *c,
    const struct tributary_track *track, int64_t value,
    const struct tributary_arg *args, size_t n);
TRIBUTARY_API void tributary_count_double(const struct tributary_category *c,
    const struct tributary_track *track, double value,
    const struct tributary_arg *args, size_t n);

#define TRIBUTARY_EMIT_0(id, type, name)                                       \
	do {                                                                   \
		if (TRIBUTARY_ENABLED(id))                                     \
			tributary_event(&tributary_category_##id, type, name); \
	} while (0)
#define TRIBUTARY_EMIT_N(id, type, name, ...)                                  \
	do {                                                                   \
		if (TRIBUTARY_ENABLED(id)) {                                   \
			const struct tributary_arg tributary_args_[] = {       \
			    __VA_ARGS__ };                                     \
			tributary_event_args(&tributary_category_##id, type,   \
			    name, tributary_args_, sizeof(tributary_args_) /   \
			    sizeof(tributary_args_[0]));                       \
		}                                                              \
	} while (0)
/* Picks EMIT_0 or EMIT_N by whether there are arguments (up to 40). */
#define TRIBUTARY_41ST(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, \
    _14, _15, _16, _17, _18, _19, _20, _21, _22, _23, _24, _25, _26, _27, _28, \
    _29, _30, _31, _32, _33, _34, _35, _36, _37, _38, _39, _40, _41, ...) _41
#define TRIBUTARY_0_OR_N(...) TRIBUTARY_41ST(__VA_ARGS__, N, N, N, N, N, N, N, \
    N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, \
    N, N, N, N, N, N, N, 0, 0)
#define TRIBUTARY_PASTE_(a, b) a##b
#define TRIBUTARY_PASTE(a, b)  TRIBUTARY_PASTE_(a, b)
#define TRIBUTARY_CALL(macro, args) macro args

/* TRIBUTARY_BEGIN(category, "name" [, argument ...]) */
#define TRIBUTARY_BEGIN(id, ...)                                               \
	TRIBUTARY_CALL(TRIBUTARY_PASTE(TRIBUTARY_EMIT_,                        \
	    TRIBUTARY_0_OR_N(__VA_ARGS__)), (id, TRIBUTARY_SLICE_BEGIN,        \
	    "" __VA_ARGS__))
/* TRIBUTARY_END(category [, argument ...]) ends the innermost open slice. */
#define TRIBUTARY_END(...)                                                     \
	TRIBUTARY_PASTE(TRIBUTARY_END_, TRIBUTARY_0_OR_N(__VA_ARGS__))         \
	    (__VA_ARGS__)
#define TRIBUTARY_END_0(id)                                                    \
	TRIBUTARY_EMIT_0(id, TRIBUTARY_SLICE_END, NULL)
#define TRIBUTARY_END_N(id, ...)                                               \
	TRIBUTARY_EMIT_N(id, TRIBUTARY_SLICE_END, NULL, __VA_ARGS__)
/* TRIBUTARY_INSTANT(category, "name" [, argument ...]) */
#define TRIBUTARY_INSTANT(id, ...)                                             \
	TRIBUTARY_CALL(TRIBUTARY_PASTE(TRIBUTARY_EMIT_,                        \
	    TRIBUTARY_0_OR_N(__VA_ARGS__)), (id, TRIBUTARY_EVENT_INSTANT,      \
	    "" __VA_ARGS__))

/*
 * TRIBUTARY_SLICE(category, "name" [, argument ...]): a slice from here to the
 * end of the block, however it is left.
 */
struct tributary_slice {
	const struct tributary_category *category;
	uint64_t instances; /* in which it has begun */
};
TRIBUTARY_API void tributary_slice_end(const struct tributary_slice *s);
static inline void
tributary_slice_over(struct tributary_slice *s)
{
	if (s->instances != 0)
		tributary_slice_end(s);
}
#define TRIBUTARY_SLICE(id, ...)                                               \
	__attribute__((cleanup(tributary_slice_over), unused))                 \
	    struct tributary_slice TRIBUTARY_PASTE(tributary_slice_,           \
	    __LINE__) = { &tributary_category_##id,                            \
	    __atomic_load_n(&tributary_category_##id.enabled,                  \
	    __ATOMIC_RELAXED) };                                               \
	TRIBUTARY_BEGIN(id, __VA_ARGS__)

/* TRIBUTARY_COUNTER(category, &track, value) */
#define TRIBUTARY_COUNTER(id, track, value)                                    \
	do {                                                                   \
		if (TRIBUTARY_ENABLED(id))                                     \
			tributary_count(&tributary_category_##id, track,       \
			    value, NULL, 0);                                   \
	} while (0)
#define TRIBUTARY_COUNTER_DOUBLE(id, track, value)                             \
	do {                                                                   \
		if (TRIBUTARY_ENABLED(id))                                     \
			tributary_count_double(&tributary_category_##id,       \
			    track, value, NULL, 0);                            \
	} while (0)

#ifdef __cplusplus
}
#endif

#endif /* TRIBUTARY_TRACK_EVENT_H */
