/*
 * uploader: sends what the store has not got, as long as the process lives.
 *
 * One thread, one segment after the other, oldest in the catalogue first.
 * Learns of new segments by the catalogue's file changing.
 */
#ifndef CLIENT_UPLOAD_UPLOADER_H
#define CLIENT_UPLOAD_UPLOADER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct upload_settings;
struct uploader;

/* Set by signal handlers, which then make `wake` readable. */
struct uploader_signals {
	volatile sig_atomic_t stop;
	volatile sig_atomic_t try_now; /* and read the credentials again */
	int wake;                      /* non-blocking */
};

/*
 * Locks the archive and reads the credentials; settings and signals are
 * borrowed.  NULL with a sentence.
 */
struct uploader *uploader_new(const struct upload_settings *settings,
    struct uploader_signals *signals, char *err, size_t err_size) MUST_CHECK;
void uploader_free(struct uploader *u);

/* Until signals->stop. */
void uploader_run(struct uploader *u);
/*
 * Until each segment was tried.  False: the store has not got all of them.
 */
bool uploader_run_once(struct uploader *u);

#endif /* CLIENT_UPLOAD_UPLOADER_H */
