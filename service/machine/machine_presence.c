#include "service/machine/machine_presence.h"

#include <stdio.h>
#include <time.h>

static uint64_t
realtime_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void
copy(char *to, size_t size, const char *from)
{
	if (from != NULL)
		snprintf(to, size, "%s", from);
}

/*
 * The machine's relay speaks for it; producers that connect by themselves do
 * not.
 */
static void
note_visitor(struct machine_contact *c, const struct machine_visitor *v)
{
	if (v->reach == MACHINE_DIRECT && c->n_relays > 0)
		return;
	c->reach = v->reach;
	copy(c->address, sizeof(c->address), v->address);
	copy(c->authenticated, sizeof(c->authenticated), v->authenticated);
	copy(c->software, sizeof(c->software), v->software);
}

void
machine_presence_came(struct machine *m, const struct machine_visitor *v)
{
	struct machine_contact *c = &m->contact;
	bool was_there = machine_is_connected(m);
	uint64_t now = realtime_ns();

	if (c->first_seen_ns == 0)
		c->first_seen_ns = now;
	else if (v->reach != MACHINE_DIRECT)
		c->reconnects++;
	note_visitor(c, v);
	if (v->reach == MACHINE_DIRECT)
		c->n_producers++;
	else
		c->n_relays++;
	machine_account(m)->n_connections++;
	if (!was_there || v->reach != MACHINE_DIRECT)
		c->connected_since_ns = now;
	c->cut = false;
}

static void
went(struct machine *m)
{
	if (!machine_is_connected(m))
		m->contact.cut_since_ns = realtime_ns();
}

void
machine_presence_cut(struct machine *m, bool waited)
{
	struct machine_contact *c = &m->contact;

	c->n_relays--;
	machine_account(m)->n_connections--;
	went(m);
	c->cut = !machine_is_connected(m) && waited;
}

void
machine_presence_gone(struct machine *m, bool connected)
{
	struct machine_contact *c = &m->contact;

	if (connected) {
		c->n_relays--;
		machine_account(m)->n_connections--;
		went(m);
	}
	c->cut = false;
}

void
machine_presence_left(struct machine *m)
{
	m->contact.n_producers--;
	machine_account(m)->n_connections--;
	went(m);
}
