/*
 * A catalogue of a million segments: what a row costs, and how long `tributary
 * find` takes as a process, whatever is asked for.
 *
 *	bench_catalogue [SEGMENTS]
 *
 * Two weeks of 1000 machines.  $TRIBUTARY names the program, $TMPDIR where the
 * catalogue goes for the while; with $BENCH_KEEP it is kept in that folder, and
 * used again.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/segment_entry.h"

#define SEGMENTS 1000000u
#define MACHINES 1000u
#define SECOND   INT64_C(1000000000)
#define BEGIN    (1790000000 * SECOND)
#define WEEKS    (14 * 86400 * SECOND)
#define AIM_MS   100
/* The best of so many: the machine is shared. */
#define REPEATS 5
/* Rows that are put one by one at the end, half of them with many processes. */
#define SINGLE 400u
#define FEW    10u
#define MANY   200u

extern char **environ;

static char folder[256];
static char err[512];

static double
now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
give_up(const char *what)
{
	fprintf(stderr, "bench_catalogue: %s\n", what);
	exit(1);
}

/* A number that looks like chance, always the same for a segment and use. */
static uint32_t
chance(uint32_t segment, uint32_t use)
{
	uint64_t x = ((uint64_t)segment << 32 | use) * 0x9e3779b97f4a7c15u;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(x >> 32);
}

/* ---- the rows ---- */

/* Text of one segment. */
struct text {
	char path[96], machine[32], trigger[32];
	char process[MANY][48];
};

static void
set_process(struct segment_entry *e, struct text *t, uint32_t segment,
    uint32_t day, const char *name)
{
	struct segment_process *p = &e->processes[e->n_processes];

	snprintf(t->process[e->n_processes], sizeof(t->process[0]), "%s",
	    name);
	p->name = t->process[e->n_processes];
	/* As if each machine were booted each day. */
	p->pid = (int32_t)(300 + chance(segment % MACHINES,
	    day * 1000 + (uint32_t)e->n_processes) % 30000);
	p->machine_id = 7;
	e->n_processes++;
}

/* Programs: everywhere, common, and those that were there for a while. */
static void
set_processes(struct segment_entry *e, struct text *t, uint32_t i, uint32_t of,
    size_t n)
{
	uint32_t day = (uint32_t)((uint64_t)i * 14 / of);
	char name[48];

	set_process(e, t, i, day, "/usr/bin/chromium");
	if (day < 2)
		set_process(e, t, i, day, "/opt/old-app");
	if (day >= 12)
		set_process(e, t, i, day, "/opt/new-app");
	if (i < 20)
		set_process(e, t, i, day, "/opt/first-app");
	if (chance(i, 1) % 20000 == 0)
		set_process(e, t, i, day, "/opt/rare-app");
	if (i % MACHINES == 7 && i / MACHINES < 20)
		set_process(e, t, i, day, "/opt/once-here");
	while (e->n_processes < n) {
		snprintf(name, sizeof(name), "/usr/bin/program-%u",
		    chance(i % MACHINES, (uint32_t)e->n_processes) % 2000);
		set_process(e, t, i, day, name);
	}
}

static void
set_trigger(struct segment_entry *e, struct text *t, uint32_t i, uint32_t of)
{
	const char *name = chance(i, 2) % 100 == 0 ? "drop" :
	    i < of / 2 && chance(i, 3) % 50 == 0 ? "old-stall" :
	    i < 20 ? "first-stall" : NULL;

	if (name == NULL)
		return;
	snprintf(t->trigger, sizeof(t->trigger), "%s", name);
	e->triggers->name = t->trigger;
	e->triggers->producer = t->process[0];
	e->triggers->has_wall = true;
	e->triggers->wall_ns = e->wall.first_ns + SECOND;
	e->n_triggers = 1;
}

static void
put(struct catalog *c, uint32_t i, uint32_t of, size_t n_processes)
{
	static struct text t;
	struct segment_process processes[MANY];
	struct segment_machine machine = { .id = 7, .name = t.machine,
		.packets = 90000, .bytes = 3 << 20 };
	struct segment_trigger trigger = { .machine_id = 7 };
	struct segment_loss loss = { .text = (char *)"12 chunks lost",
		.cause = (char *)"chunks overwritten", .unit = "chunk",
		.place = "session", .count = 12, .machine_id = -1 };
	char *sources[] = { (char *)"linux.ftrace", (char *)"track_event" };
	int64_t span = WEEKS / (of / MACHINES);
	struct segment_entry e = { .path = t.path, .bytes = 1 << 20,
		.verdict = (char *)"whole", .problem = (char *)"",
		.recording = (char *)"always", .number = i / MACHINES + 1,
		.machine = t.machine, .packets = 90000, .machines = &machine,
		.n_machines = 1, .triggers = &trigger, .losses = &loss,
		.data_sources = sources, .n_data_sources = 2,
		.processes = processes };
	uint32_t m = i % MACHINES;

	memcpy(e.sha256, &i, sizeof(i));
	snprintf(t.machine, sizeof(t.machine), "kiosk-%u", m);
	e.wall = (struct segment_span){ true, BEGIN + i / MACHINES * span +
		m * SECOND / 50, 0 };
	/* One in a thousand is of a day. */
	e.wall.last_ns = e.wall.first_ns + (chance(i, 4) % 1000 == 0 ?
	    86400 * SECOND : span);
	e.boot = machine.wall = e.wall;
	snprintf(t.path, sizeof(t.path), "kiosk-%u/day-%02u/%06u.pftrace", m,
	    (unsigned)((uint64_t)i * 14 / of), i / MACHINES);
	e.lost = chance(i, 5) % 200 == 0 ? 12 : 0;
	e.n_losses = e.lost > 0;
	set_processes(&e, &t, i, of, n_processes);
	set_trigger(&e, &t, i, of);
	if (catalog_put(c, &e, false, err, sizeof(err)) < 0)
		give_up(err);
}

static void
put_singly(struct catalog *c, uint32_t first, uint32_t of, size_t processes)
{
	double t = now_ms(CLOCK_MONOTONIC);
	double cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	uint32_t i;

	for (i = first; i < first + SINGLE / 2; i++)
		put(c, i, of, processes);
	t = now_ms(CLOCK_MONOTONIC) - t;
	cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("a row with %3zu processes, a transaction each: %6.2f ms, "
	    "processor %.2f ms\n", processes, t / (SINGLE / 2),
	    cpu / (SINGLE / 2));
}

static struct catalog *
open_catalog(void)
{
	struct catalog *c = catalog_open(folder, CATALOG_WRITE, err,
	    sizeof(err));

	if (c == NULL)
		give_up(err);
	return c;
}

static void
fill(uint32_t of)
{
	struct catalog *c = open_catalog();
	double t = now_ms(CLOCK_MONOTONIC);
	uint32_t i;

	/* In memory, and many rows in a transaction: only to be there soon. */
	if (sqlite3_exec(catalog_handle(c), "PRAGMA cache_size = -4000000;"
	    "PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 200000",
	    NULL, NULL, NULL) != SQLITE_OK)
		give_up("cannot set the catalogue");
	for (i = 0; i < of - SINGLE; i++) {
		if (i % 50000 == 0 && catalog_begin(c, err, sizeof(err)) < 0)
			give_up(err);
		put(c, i, of, FEW);
		if ((i % 50000 == 49999 || i + 1 == of - SINGLE) &&
		    catalog_commit(c, err, sizeof(err)) < 0)
			give_up(err);
	}
	printf("%u segments of %u machines in two weeks, made in %.0f s\n",
	    of, MACHINES, (now_ms(CLOCK_MONOTONIC) - t) / 1000);
	catalog_close(c);
	c = open_catalog();
	put_singly(c, of - SINGLE, of, FEW);
	put_singly(c, of - SINGLE / 2, of, MANY);
	catalog_close(c);
}

/* In a process of its own: what it takes would count as memory of find's. */
static void
fill_aside(uint32_t of)
{
	int status;
	pid_t pid;

	if ((pid = fork()) == 0) {
		fill(of);
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		give_up("cannot make the catalogue");
}

static void
print_size(uint32_t of)
{
	char path[300];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, CATALOG_FILE);
	if (stat(path, &st) < 0)
		give_up(path);
	printf("catalog.db: %.0f MB, %.0f bytes a segment with %u processes\n",
	    (double)st.st_size / 1e6, (double)st.st_size / of, FEW);
}

/* ---- what is asked ---- */

#define WORDS 12
struct question {
	const char *words[WORDS];
	int status; /* 1: nothing is found */
};

#define NEW   "@1791209000"
#define NEW_0 "@1791200000"
#define OLD   "@1790000900"
#define OLD_0 "@1790009000"
#define AWAY  "@1780000000"

static const struct question questions[] = {
	{ { "--machine", "kiosk-7", "--at", NEW, "--around", "30s" }, 0 },
	{ { "--machine", "kiosk-7", "--at", OLD, "--around", "30s" }, 0 },
	{ { "--machine", "kiosk-7", "--at", AWAY, "--around", "30s" }, 1 },
	{ { "--at", NEW, "--around", "30s" }, 0 },
	{ { "--at", OLD, "--around", "30s" }, 0 },
	{ { "--at", AWAY }, 1 },
	{ { "--from", NEW_0 }, 0 },
	{ { "--to", OLD_0 }, 0 },
	{ { "--from", OLD_0, "--to", NEW_0, "--json" }, 0 },
	{ { "--machine", "kiosk-7" }, 0 },
	{ { "--machine", "kiosk-7*" }, 0 },
	{ { "--machine", "kiosk-*", "--at", OLD }, 0 },
	{ { "--machine", "kiosk-none" }, 1 },
	{ { "--trigger", "drop" }, 0 },
	{ { "--trigger", "old-stall" }, 0 },
	{ { "--trigger", "first-stall", "--json" }, 0 },
	{ { "--trigger", "none" }, 1 },
	{ { "--lost" }, 0 },
	{ { "--lost", "--to", OLD_0 }, 0 },
	{ { "--lost", "--at", AWAY }, 1 },
	{ { "--process", "chromium" }, 0 },
	{ { "--process", "new-app" }, 0 },
	{ { "--process", "old-app" }, 0 },
	{ { "--process", "first-app" }, 0 },
	{ { "--process", "rare-app", "--json" }, 0 },
	{ { "--process", "program-*" }, 0 },
	{ { "--process", "*d-app" }, 0 },
	{ { "--process", "none" }, 1 },
	{ { "--process", "chromium", "--machine", "kiosk-7" }, 0 },
	{ { "--process", "old-app", "--machine", "kiosk-7" }, 0 },
	{ { "--process", "once-here", "--machine", "kiosk-7" }, 0 },
	{ { "--process", "once-here", "--machine", "kiosk-8" }, 1 },
	{ { "--process", "once-here", "--machine", "kiosk-*" }, 0 },
	{ { "--process", "old-app", "--at", NEW }, 1 },
	{ { "--process", "old-app", "--from", OLD, "--to", NEW }, 0 },
	{ { "--process", "first-app", "--trigger", "drop" }, 1 },
	{ { "--process", "new-app", "--trigger", "drop" }, 0 },
	{ { "--process", "new-app", "--trigger", "old-stall" }, 1 },
	{ { "--process", "new-app", "--trigger", "old-stall", "--from",
	    OLD }, 1 },
	{ { "--process", "old-app", "--lost" }, 0 },
	{ { "--trigger", "old-stall", "--lost" }, 0 },
	{ { "--trigger", "drop", "--lost", "--process", "old-app" }, 0 },
	{ { "--trigger", "first-stall", "--machine", "kiosk-999" }, 1 },
	{ { "--trigger", "drop", "--machine", "kiosk-7" }, 0 },
	{ { "--trigger", "drop", "--at", OLD, "--around", "1h" }, 0 },
	{ { "--lost", "--machine", "kiosk-7", "--at", OLD }, 1 },
	{ { "--lost", "--machine", "kiosk-7", "--process", "chromium" }, 0 },
	{ { "--lost", "--machine", "kiosk-*", "--process", "*-app" }, 0 },
	{ { "--process", "chromium", "--machine", "kiosk-7", "--at", OLD,
	    "--json" }, 0 },
	{ { "--process", "new-app", "--machine", "kiosk-7", "--at", OLD }, 1 },
	{ { "--process", "old-app", "--machine", "kiosk-*", "--from", NEW },
	    1 },
	{ { "--recording", "always", "--process", "first-app", "--to", NEW },
	    0 },
};

struct cost {
	double wall_ms, cpu_ms;
	long peak_kb;
};

static double
milliseconds(const struct timeval *t)
{
	return (double)t->tv_sec * 1e3 + (double)t->tv_usec / 1e3;
}

/* Runs find once; the cost where it is less. */
static void
ask(const char *program, const struct question *q, struct cost *best)
{
	const char *argv[WORDS + 5] = { program, "find", "--archive", folder };
	posix_spawn_file_actions_t files;
	struct rusage used;
	double t = now_ms(CLOCK_MONOTONIC), cpu;
	int i, status;
	pid_t pid;

	for (i = 0; i < WORDS && q->words[i] != NULL; i++)
		argv[4 + i] = q->words[i];
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, program, &files, NULL, (char *const *)argv,
	    environ) != 0 || wait4(pid, &status, 0, &used) != pid)
		give_up("cannot run $TRIBUTARY");
	posix_spawn_file_actions_destroy(&files);
	t = now_ms(CLOCK_MONOTONIC) - t;
	cpu = milliseconds(&used.ru_utime) + milliseconds(&used.ru_stime);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != q->status)
		best->peak_kb = -1;
	if (t < best->wall_ms)
		best->wall_ms = t;
	if (cpu < best->cpu_ms)
		best->cpu_ms = cpu;
	if (best->peak_kb >= 0 && used.ru_maxrss > best->peak_kb)
		best->peak_kb = used.ru_maxrss;
}

static bool
ask_all(const char *program)
{
	struct cost worst = { 0, 0, 0 }, c;
	const struct question *q;
	bool answered = true;
	size_t i, k;

	printf("\n%8s %9s %7s  tributary find (aim %d ms)\n", "ms",
	    "processor", "MB", AIM_MS);
	for (i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		q = &questions[i];
		c = (struct cost){ 1e9, 1e9, 0 };
		for (k = 0; k < REPEATS; k++)
			ask(program, q, &c);
		printf("%8.1f %9.1f %7.1f ", c.wall_ms, c.cpu_ms,
		    (double)c.peak_kb / 1024);
		for (k = 0; k < WORDS && q->words[k] != NULL; k++)
			printf(" %s", q->words[k]);
		if (c.peak_kb < 0)
			printf("  WRONG: exit status");
		else if (q->status == 1)
			printf("  (nothing)");
		printf("%s\n", c.wall_ms < AIM_MS ? "" : "  ABOVE THE AIM");
		answered = answered && c.peak_kb >= 0;
		if (c.wall_ms > worst.wall_ms)
			worst.wall_ms = c.wall_ms;
		if (c.cpu_ms > worst.cpu_ms)
			worst.cpu_ms = c.cpu_ms;
		if (c.peak_kb > worst.peak_kb)
			worst.peak_kb = c.peak_kb;
	}
	printf("at most %.1f ms (aim %d), %.1f ms of processor time, %.1f MB\n",
	    worst.wall_ms, AIM_MS, worst.cpu_ms,
	    (double)worst.peak_kb / 1024);
	return answered;
}

int
main(int argc, char **argv)
{
	uint32_t of = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) :
	    SEGMENTS;
	const char *keep = getenv("BENCH_KEEP"), *base = getenv("TMPDIR");
	const char *program = getenv("TRIBUTARY");
	char path[300];
	bool ok;

	if (program == NULL || of < 4 * SINGLE)
		give_up("wants $TRIBUTARY, and 1600 segments at least");
	snprintf(folder, sizeof(folder), "%s/bench_catalogue.XXXXXX",
	    base == NULL ? "/var/tmp" : base);
	if (keep != NULL)
		snprintf(folder, sizeof(folder), "%s", keep);
	else if (mkdtemp(folder) == NULL)
		give_up("cannot make a folder in $TMPDIR");
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(path, sizeof(path), "%s/%s", folder, CATALOG_FILE);
	if (access(path, F_OK) < 0)
		fill_aside(of);
	print_size(of);
	ok = ask_all(program);
	if (keep == NULL && (catalog_destroy(folder, err, sizeof(err)) < 0 ||
	    rmdir(folder) < 0))
		give_up("cannot remove the catalogue again");
	return ok ? 0 : 1;
}
