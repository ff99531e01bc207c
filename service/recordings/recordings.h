/*
 * recordings: the standing recordings of the settings, as sessions that the
 * daemon itself owns.
 *
 * Owned by the daemon; ports find it in struct service.  Knows neither sockets
 * nor the files of segments.
 */
#ifndef SERVICE_RECORDINGS_RECORDINGS_H
#define SERVICE_RECORDINGS_RECORDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "service/model/model.h"
#include "transport/base/compiler.h"

struct pb_writer;
struct principal;
struct recordings;
struct service;
struct settings;

/* Bytes of a sentence about a recording. */
#define RECORDING_TEXT 400u

enum recording_verb {
	RECORDING_DO_START,
	RECORDING_DO_STOP,
	RECORDING_DO_ROTATE,
};

/* error: NULL when it was done, else a sentence, borrowed for the call. */
typedef void (*recording_done_fn)(void *arg, const char *error);

/*
 * Reads the config files of all recordings and checks them.  -1 with the message
 * for people in err (SETTINGS_ERROR_SIZE).
 */
int recordings_check(const struct settings *s, char *err, size_t err_size)
    MUST_CHECK;

/*
 * Makes the recordings of the service's settings and opens their folder; none
 * has begun.  NULL with the message in err.
 */
struct recordings *recordings_new(struct service *s, char *err,
    size_t err_size) MUST_CHECK;
/* Sessions that have not ended complete their files by themselves. */
void recordings_free(struct recordings *all);

/* Begins all: for when the daemon has its final user and threads. */
void recordings_begin(struct recordings *all);
/*
 * Reads the settings file again, of which only recordings count: new ones begin,
 * changed ones end and begin anew, others end.  Where anything is wrong with
 * the file, says so in the log, and changes nothing.
 */
void recordings_reload(struct recordings *all);

/*
 * An order from a peer: who may is who may command the daemon's sessions.  done
 * is called once, perhaps from inside this call.  START: answered when the
 * session has its file; STOP: when all files are complete.  A recording that was
 * stopped stays so, until START or a new daemon.
 */
struct recording_order {
	enum recording_verb verb;
	const char *name;
	const struct principal *who;
};
void recordings_order(struct recordings *all, const struct recording_order *o,
    recording_done_fn done, void *arg);
/* Clears done of the orders with this arg; what they have begun goes on. */
void recordings_forget(struct recordings *all, void *arg);

/*
 * Appends a RecordingState as this field for each; nothing for one that may not
 * command them.
 */
void recordings_report(const struct recordings *all,
    const struct principal *who, uint32_t field, struct pb_writer *w);

/* How many recordings are in a RecordingState.State; 0 where all is NULL. */
size_t recordings_in_state(const struct recordings *all, uint64_t state);
/* The folder of segments, borrowed; -1: there is none. */
int recordings_folder(const struct recordings *all);

#endif /* SERVICE_RECORDINGS_RECORDINGS_H */
