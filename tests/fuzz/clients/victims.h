/*
 * victims: the clients that a hostile service (hostile_host.c) is let loose
 * upon, one at a time, busy with all that they can ask for.
 */
#ifndef TESTS_FUZZ_CLIENTS_VICTIMS_H
#define TESTS_FUZZ_CLIENTS_VICTIMS_H

struct loop;

enum victim {
	VICTIM_CONSUMER,
	VICTIM_CONTROL,
	VICTIM_PRODUCER,
	VICTIM_LINK,    /* a relay */
	VICTIM_CLASSIC, /* one in Perfetto's way */
	VICTIMS,
};

/* What the service offers it; NULL at the end. */
const char *const *victim_methods(enum victim v);
/* Makes it.  The service's end of its connection; -1: victim_accept(). */
int victim_begin(struct loop *l, enum victim v);
/* The end of one that connected by itself; -1: not yet. */
int victim_accept(void);
/* It asks for something more. */
void victim_act(unsigned how);
void victim_end(void);

#endif /* TESTS_FUZZ_CLIENTS_VICTIMS_H */
