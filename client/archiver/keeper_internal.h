/* keeper_internal: the keeper's struct, for keeper*.c alone. */
#ifndef CLIENT_ARCHIVER_KEEPER_INTERNAL_H
#define CLIENT_ARCHIVER_KEEPER_INTERNAL_H

#include <pthread.h>

#include "client/archiver/keeper.h"
#include "client/archiver/settings.h"
#include "client/archiver/work_queue.h"

struct catalog;

/* A limit that was named in the log, and still cannot be kept. */
struct told_excess {
	enum retention_scope scope;
	bool by_age;
	char name[KEEPER_NAME_MAX];
};

/*
 * Segments that could not be deleted are left out of plans, until the folder is
 * looked through again: they would be chosen again and again.
 */
#define KEEPER_STUCK_MAX 64u

struct keeper {
	int fd;                   /* of the folder; borrowed */
	struct work_queue *queue; /* owned */
	pthread_t thread;
	bool has_thread;

	/* Shared, under lock. */
	pthread_mutex_t lock;
	struct keeper_view view;
	struct archiver_settings *next_settings; /* owned; NULL: none new */

	/* The thread's. */
	struct archiver_settings settings;
	struct catalog *catalog;
	bool changed;         /* rows did, since the last plan */
	int64_t data_version; /* of the catalogue, as other programs change it */
	uint64_t due_ms;      /* CLOCK_REALTIME: a segment gets too old */
	uint64_t not_before_ms; /* CLOCK_MONOTONIC: the next plan of all */
	uint64_t resume_ms;     /* CLOCK_MONOTONIC: no deletion before */
	uint64_t rescan_at_ms;  /* CLOCK_MONOTONIC */
	bool was_near;
	struct told_excess told[KEEPER_EXCESSES_MAX];
	size_t n_told;
	int64_t stuck[KEEPER_STUCK_MAX]; /* ids; the oldest are overwritten */
	size_t n_stuck;                  /* ever since the last look */
};

/* CLOCK_REALTIME. */
uint64_t keeper_wall_ms(void);
/* Logs a failure, and keeps it for the status. */
void keeper_fail(struct keeper *k, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * keeper_look.c: compares one path, or all below a folder, with the catalogue,
 * and brings that up to date.
 */
void keeper_look_file(struct keeper *k, const char *path);
void keeper_look_folder(struct keeper *k, const char *path);
/* Closes parts of segments after a crash, unless a process writes some. */
void keeper_recover(struct keeper *k);

/* keeper_retain.c: deletes what the policy wants, if it is time for it. */
void keeper_retain(struct keeper *k);

/* keeper_delete.c */
struct keeper_deletion {
	int64_t id;
	size_t cause;       /* as in the view */
	const char *why;
};
/*
 * 0 also where the segment is to stay, by now, or is gone.  -1: it could not be
 * deleted, which was told.
 */
int keeper_delete(struct keeper *k, const struct keeper_deletion *d) MUST_CHECK;

#endif /* CLIENT_ARCHIVER_KEEPER_INTERNAL_H */
