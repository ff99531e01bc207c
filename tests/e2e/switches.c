/*
 * Makes threads switch, for tests that hold what was recorded of it against the
 * number there was:
 *
 *	switches PAIRS ROUNDS
 *
 * PAIRS pairs of processes, named "asks" and "answers", send a byte to each
 * other and back ROUNDS times through pipes.  The two of a pair are kept on one
 * processor, so that each way takes a switch.  Ends when all are done.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void
give_up(const char *what)
{
	perror(what);
	exit(1);
}

static void
stay_on_processor(int n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		give_up("sched_setaffinity");
}

static void
bounce(bool asks, int in, int out, long rounds)
{
	char byte = 0;

	prctl(PR_SET_NAME, asks ? "asks" : "answers");
	while (rounds-- > 0) {
		if (asks && write(out, &byte, 1) != 1)
			give_up("write");
		if (read(in, &byte, 1) != 1)
			give_up("read");
		if (!asks && write(out, &byte, 1) != 1)
			give_up("write");
	}
}

/* A process of its own; false: a child that is done. */
static bool
start(bool asks, int in, int out, long rounds)
{
	const pid_t pid = fork();

	if (pid < 0)
		give_up("fork");
	if (pid == 0)
		bounce(asks, in, out, rounds);
	return pid != 0;
}

int
main(int argc, char **argv)
{
	long pairs, rounds, i, processors = sysconf(_SC_NPROCESSORS_ONLN);
	int there[2], back[2], status, bad = 0;

	if (argc != 3 || (pairs = atol(argv[1])) <= 0 ||
	    (rounds = atol(argv[2])) <= 0) {
		fprintf(stderr, "usage: switches PAIRS ROUNDS\n");
		return 2;
	}
	for (i = 0; i < pairs; i++) {
		if (pipe(there) < 0 || pipe(back) < 0)
			give_up("pipe");
		stay_on_processor((int)(i % processors));
		if (!start(false, there[0], back[1], rounds) ||
		    !start(true, back[0], there[1], rounds))
			return 0;
	}
	while (wait(&status) > 0)
		bad |= status;
	return bad != 0;
}
