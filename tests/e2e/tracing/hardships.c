/*
 * A program that traces itself under hardships, and does what its input says, a
 * line at a time:
 *
 *	hardships ADDRESS MEMORY_KB PROGRESS_FILE
 *
 * Answers each line with numbers and "ok"; ends at the end of its input.  The
 * file of progress has a count of events for each thread that numbers them:
 * those whose calls have returned.  Expected by tests/e2e/test_hardships.py.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <tributary/data_source.h>
#include <tributary/track_event.h>
#include <unistd.h>

TRIBUTARY_CATEGORY(net, "net", "", "");

#define THREADS_MAX 64

static struct tributary_source *source, *waiting;
static struct tributary_instance *_Atomic instance;
static _Atomic uint64_t *progress; /* of THREADS_MAX threads */
static atomic_bool over, never;

static void
check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static pthread_t
begin_thread(void *(*run)(void *arg), void *arg)
{
	pthread_t t;
	int rc = pthread_create(&t, NULL, run, arg);

	errno = rc;
	check(rc == 0, "no thread");
	return t;
}

/* ---- A data source that counts ---- */

static bool
on_setup(struct tributary_instance *i, const void *config, size_t len,
    void *arg, void **context)
{
	instance = i;
	return true;
}

static const struct tributary_source_ops ops = {
	.size = sizeof(ops),
	.setup = on_setup,
};

static void
put_test(struct tributary_packet *p, struct tributary_instance *i,
    void *context, bool first, void *arg)
{
	tributary_begin(p, 900); /* for_testing */
	tributary_put_string(p, 1, arg);
	tributary_end(p);
}

/* ---- A data source whose writers wait ---- */

#define FLUSH_PACKETS 200

static bool
on_flush(struct tributary_instance *i, void *context, uint64_t flush_id)
{
	size_t n;

	for (n = 0; n < FLUSH_PACKETS; n++)
		check(tributary_instance_write(i, put_test, (char *)"callback"),
		    "a packet was dropped");
	return true;
}

static const struct tributary_source_ops waiting_ops = {
	.size = sizeof(waiting_ops),
	.flush = on_flush,
};

static char text_of_3000[3000];

static void *
write_waiting(void *arg)
{
	size_t i, n = (size_t)arg;

	for (i = 0; i < n; i++)
		tributary_source_write(waiting, put_test,
		    i % 16 == 7 ? text_of_3000 : (char *)"waiting");
	return NULL;
}

static void *
write_once(void *arg)
{
	pthread_barrier_t *wrote = arg;

	(void)write_waiting((void *)1);
	pthread_barrier_wait(wrote);
	while (!atomic_load(&never))
		pause();
	return NULL;
}

/* Beside so many threads that have written one packet and sleep for ever. */
static void
crowd(size_t idle, size_t n)
{
	pthread_barrier_t wrote;
	pthread_t t[THREADS_MAX];
	size_t i;

	memset(text_of_3000, 't', sizeof(text_of_3000) - 1);
	pthread_barrier_init(&wrote, NULL, (unsigned)idle + 1);
	for (i = 0; i < idle; i++)
		pthread_detach(begin_thread(write_once, &wrote));
	pthread_barrier_wait(&wrote);
	for (i = 0; i < THREADS_MAX; i++)
		t[i] = begin_thread(write_waiting, (void *)n);
	for (i = 0; i < THREADS_MAX; i++)
		pthread_join(t[i], NULL);
}

/* ---- Signals ---- */

static atomic_ulong handled, outside;
static char long_text[1500];

static void
on_signal(int number)
{
	int saved = errno;

	tributary_source_write(source, put_test,
	    handled % 3 == 0 ? long_text : (char *)"short");
	TRIBUTARY_INSTANT(net, "in a handler", tributary_string("text",
	    handled % 5 == 0 ? long_text : "short"));
	TRIBUTARY_BEGIN(net, "slice of a handler");
	TRIBUTARY_END(net);
	check(errno == saved, "errno has changed");
	handled++;
}

static void *
live_shortly(void *arg)
{
	TRIBUTARY_INSTANT(net, "of a short life");
	free(malloc(100));
	return NULL;
}

/* All that a handler may interrupt; no more events than handlers have. */
static void *
be_interrupted(void *arg)
{
	size_t i, n, first = (size_t)arg;
	void *blocks[16] = { NULL };
	char name[16];

	for (i = n = first; !over; n++) {
		free(blocks[n % 16]);
		blocks[n % 16] = malloc(n * 7919 % 5000);
		blocks[n % 16] = realloc(blocks[n % 16], n * 31 % 9000 + 1);
		if (i > handled + 100)
			continue;
		i++;
		snprintf(name, sizeof(name), "event %zu", i);
		TRIBUTARY_INSTANT(net, "outside", tributary_name(name),
		    tributary_string("text", i % 7 == 0 ? long_text : "short"));
		tributary_source_write(source, put_test, (char *)"outside");
		outside++;
		if (i % 64 == 0)
			pthread_join(begin_thread(live_shortly, NULL), NULL);
		if (i % 200 == 0)
			tributary_set_thread_name(name);
		if (i % 512 == 0)
			tributary_flush(0);
	}
	for (i = 0; i < 16; i++)
		free(blocks[i]);
	return NULL;
}

/* Until handlers have run so often; says that, packets, and those dropped. */
static void
signals(unsigned long times)
{
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t t[4];
	size_t i;

	memset(long_text, 'l', sizeof(long_text) - 1);
	sigemptyset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, NULL);
	over = false;
	for (i = 0; i < 4; i++)
		t[i] = begin_thread(be_interrupted, (void *)i);
	for (i = 0; handled < times; i++) {
		pthread_kill(t[i % 4], SIGUSR1);
		if (i % 16 == 0)
			usleep(50);
	}
	over = true;
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("%lu %lu %llu ", (unsigned long)handled, (unsigned long)outside,
	    (unsigned long long)tributary_instance_dropped(instance));
}

/* ---- Numbers ---- */

#define FAST_EVENTS 50000u

static void *
number(void *arg)
{
	size_t me = (size_t)arg;
	uint64_t i;

	for (i = 0; !over; i++) {
		TRIBUTARY_INSTANT(net, "number", tributary_uint("i", i),
		    tributary_uint("thread", me));
		atomic_store(&progress[me], i + 1);
		/*
		 * The memory is not to be full, nor the buffer on a slow
		 * machine: nothing is to be dropped.
		 */
		if (i % 256 == 255 || i > FAST_EVENTS)
			usleep(1000);
	}
	return NULL;
}

static pthread_t numbering[THREADS_MAX];

static void
begin_numbers(size_t n)
{
	size_t i;

	over = false;
	for (i = 0; i < n; i++)
		numbering[i] = begin_thread(number, (void *)i);
}

static void
end_numbers(size_t n)
{
	size_t i;

	over = true;
	for (i = 0; i < n; i++)
		pthread_join(numbering[i], NULL);
}

/* ---- Forks ---- */

static void
be_a_child(int i)
{
	switch (i % 4) {
	case 0:
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	case 1:
		TRIBUTARY_INSTANT(net, "of a child");
		_exit(0);
	case 2:
		/* A producer of its own, if there is time for it. */
		TRIBUTARY_INSTANT(net, "of a child");
		pthread_join(begin_thread(live_shortly, NULL), NULL);
		exit(0);
	default:
		TRIBUTARY_INSTANT(net, "of a child");
		if (fork() == 0)
			_exit(0);
		tributary_stop(100);
		_exit(0);
	}
}

/* Children of a program that writes meanwhile. */
static void
forks(int n)
{
	int i, status, failed = 0;
	pid_t pid;

	begin_numbers(4);
	for (i = 0; i < n; i++) {
		fflush(stdout);
		if ((pid = fork()) == 0)
			be_a_child(i);
		check(pid > 0, "no child");
		check(waitpid(pid, &status, 0) == pid, "no end");
		failed += status != 0;
	}
	end_numbers(4);
	printf("%d ", failed);
}

/* ---- Lives ---- */

/* So many threads, one after the other and together, with an event each. */
static void
lives(int rounds)
{
	pthread_t t[THREADS_MAX];
	int round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < THREADS_MAX; i++)
			t[i] = begin_thread(live_shortly, NULL);
		for (i = 0; i < THREADS_MAX; i++)
			pthread_join(t[i], NULL);
	}
}

static void *
exit_all(void *arg)
{
	exit(0);
	return NULL;
}

static void
wait_enabled(bool enabled)
{
	struct timespec pause = { 0, 1000 * 1000 };

	while (TRIBUTARY_ENABLED(net) != enabled)
		nanosleep(&pause, NULL);
}

/* ---- Plugins ---- */

/*
 * Loads, runs and unloads the two plugins of the folder by turns, beside
 * threads that write; says how often one was where another had been.
 */
static void
plugins(int n, const char *folder)
{
	const char *(*run)(int), *at, *before = NULL;
	char path[PATH_MAX + 32];
	void *plugin;
	int i, same = 0;

	begin_numbers(4);
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/plugin_%s.so", folder,
		    i % 2 == 0 ? "one" : "two");
		plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		check(plugin != NULL, path);
		*(void **)&run = dlsym(plugin, "plugin_run");
		check(run != NULL, "no plugin_run()");
		at = run(i);
		same += at == before;
		before = at;
		check(dlclose(plugin) == 0, "dlclose");
		check(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL,
		    "the plugin is still there");
	}
	end_numbers(4);
	printf("%d ", same);
}

static bool
run_line(const char *line)
{
	char path[PATH_MAX];
	long n, m;

	if (strcmp(line, "enabled") == 0)
		wait_enabled(true);
	else if (strcmp(line, "disabled") == 0)
		wait_enabled(false);
	else if (strcmp(line, "source") == 0)
		while (!tributary_source_enabled(source))
			usleep(1000);
	else if (strcmp(line, "waiting") == 0)
		while (!tributary_source_enabled(waiting))
			usleep(1000);
	else if (sscanf(line, "crowd %ld %ld", &n, &m) == 2)
		crowd((size_t)n, (size_t)m);
	else if (strcmp(line, "flush") == 0)
		return tributary_flush(60000);
	else if (sscanf(line, "signals %ld", &n) == 1)
		signals((unsigned long)n);
	else if (sscanf(line, "numbers %ld", &n) == 1)
		begin_numbers((size_t)n);
	else if (sscanf(line, "end %ld", &n) == 1)
		end_numbers((size_t)n);
	else if (sscanf(line, "forks %ld", &n) == 1)
		forks((int)n);
	else if (sscanf(line, "lives %ld", &n) == 1)
		lives((int)n);
	else if (sscanf(line, "plugins %ld %4000s", &n, path) == 2)
		plugins((int)n, path);
	else if (strcmp(line, "exit") == 0)
		pthread_join(begin_thread(exit_all, NULL), NULL);
	else if (strcmp(line, "return") == 0)
		exit(0);
	else
		return false;
	return true;
}

static void
begin(char **argv)
{
	struct tributary_source_options s = { .size = sizeof(s),
	    .name = "test.hardships" };
	struct tributary_options o = TRIBUTARY_OPTIONS;
	int fd = open(argv[3], O_RDWR | O_CREAT, 0600);
	size_t size = THREADS_MAX * sizeof(*progress);

	check(fd >= 0 && ftruncate(fd, (off_t)size) == 0, argv[3]);
	progress = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(progress != MAP_FAILED, "mmap");
	close(fd);
	source = tributary_source_add(&s, &ops);
	check(source != NULL, "no source");
	s.name = "test.waiting";
	s.full = TRIBUTARY_FULL_WAIT;
	waiting = tributary_source_add(&s, &waiting_ops);
	check(waiting != NULL, "no source that waits");
	o.address = argv[1];
	o.memory_bytes = (uint32_t)atoi(argv[2]) * 1024u;
	check(tributary_start(&o) == 0, "no start");
}

int
main(int argc, char **argv)
{
	char line[PATH_MAX + 32];
	bool ok;

	if (argc != 4)
		return 2;
	begin(argv);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		ok = run_line(line);
		printf("%s\n", ok ? "ok" : "bad");
		fflush(stdout);
	}
	tributary_stop(10000);
	return 0;
}
