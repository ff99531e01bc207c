/*
 * flight_recorder FILE: a program that always records its last seconds, and
 * writes them into FILE at each SIGUSR1, and when a job of it fails.
 *
 * No service is needed: the recording is in the program's own memory.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/session.h>
#include <tributary/track_event.h>

TRIBUTARY_CATEGORY(jobs, "jobs", "What this program works at", "");

static bool
do_job(unsigned number)
{
	TRIBUTARY_SLICE(jobs, "job", tributary_int("number", number));
	return number != 99999;
}

static void
save(struct tributary_local *recorder, const char *path, const char *reason)
{
	TRIBUTARY_INSTANT(jobs, "saved", tributary_string("reason", reason));
	/* At most ten seconds for threads that write at this very moment. */
	if (!tributary_local_snapshot(recorder, path, 10000)) {
		fprintf(stderr, "%s\n", tributary_local_why(recorder));
		return;
	}
	printf("%s: %s\n", path, reason);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	struct tributary_session_options options = TRIBUTARY_SESSION_OPTIONS;
	struct timespec soon = { 0, 0 };
	struct tributary_local *recorder;
	char why[200];
	sigset_t signals;
	unsigned number = 0;
	int signal = 0;

	if (argc < 2)
		return 2;
	/* Signals are waited for: a handler may not write the file. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);

	options.buffer_kb = 1024;
	options.stall = true; /* rather than to miss a job */
	recorder = tributary_session_local_simple(&options, why, sizeof(why));
	if (recorder == NULL || !tributary_local_start(recorder)) {
		fprintf(stderr, "%s\n", recorder == NULL ? why :
		    tributary_local_why(recorder));
		return 1;
	}
	while (signal != SIGTERM) {
		if (!do_job(number++))
			save(recorder, argv[1], "a job failed");
		if (number % 1000 == 0)
			signal = sigtimedwait(&signals, NULL, &soon);
		if (signal == SIGUSR1) {
			save(recorder, argv[1], "SIGUSR1");
			signal = 0;
		}
	}
	tributary_local_free(recorder);
	return 0;
}
