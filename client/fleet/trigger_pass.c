#include "client/fleet/trigger_pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/collectors.h"
#include "client/library/trigger_call.h"
#include "protos/service_state.pb-c.h"
#include "transport/base/log.h"
#include "transport/base/tailq.h"

#define ERROR_BYTES 2048
/* Longest name of a producer that collectors take, unless settings say more. */
#define PRODUCER_BYTES 1024

struct pass {
	TAILQ_ENTRY(pass) link;
	struct trigger_passes *all;
	const struct collector *from, *to;
	struct trigger_call *call;
	char *name;     /* owned */
	char *producer; /* the same */
};

struct trigger_passes {
	struct loop *loop;
	TAILQ_HEAD(, pass) list;
	size_t n;
};

struct trigger_passes *
trigger_passes_new(struct loop *l)
{
	struct trigger_passes *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->loop = l;
	TAILQ_INIT(&p->list);
	return p;
}

static void
pass_free(struct pass *p)
{
	if (p == NULL)
		return;
	trigger_call_free(p->call);
	free(p->name);
	free(p->producer);
	free(p);
}

void
trigger_passes_free(struct trigger_passes *p)
{
	struct pass *pass;

	if (p == NULL)
		return;
	while ((pass = TAILQ_FIRST(&p->list)) != NULL) {
		TAILQ_REMOVE(&p->list, pass, link);
		pass_free(pass);
	}
	free(p);
}

static void
say_lost(const struct collector *from, const struct collector *to,
    const char *name, const char *why)
{
	char text[256], reason[512];

	log_warn("%s did not get the trigger \"%s\" of %s: %s", to->name,
	    log_escape(text, sizeof(text), name, strlen(name)), from->name,
	    log_escape(reason, sizeof(reason), why, strlen(why)));
}

static void
outcome_cb(void *arg, const char *why)
{
	struct pass *p = arg;
	char text[256];

	if (why != NULL)
		say_lost(p->from, p->to, p->name, why);
	else
		log_info("%s has the trigger \"%s\" of %s", p->to->name,
		    log_escape(text, sizeof(text), p->name, strlen(p->name)),
		    p->from->name);
	TAILQ_REMOVE(&p->all->list, p, link);
	p->all->n--;
	pass_free(p);
}

static struct pass *
pass_new(struct trigger_passes *all, const struct collector *from,
    const struct collector *to,
    const Perfetto__Protos__ObservableEvents__CloneTriggerHit *hit)
{
	struct pass *p = calloc(1, sizeof(*p));
	const char *producer = hit->producer_name;

	if (p == NULL)
		return NULL;
	p->all = all;
	p->from = from;
	p->to = to;
	p->name = strdup(hit->trigger_name);
	if (asprintf(&p->producer, TRIGGER_CALL_FLEET "%s/%s", from->name,
	    producer != NULL ? producer : "") < 0)
		p->producer = NULL;
	if (p->name != NULL && p->producer != NULL) {
		if (strlen(p->producer) > PRODUCER_BYTES)
			p->producer[PRODUCER_BYTES] = '\0';
		return p;
	}
	pass_free(p);
	return NULL;
}

void
trigger_passes_add(struct trigger_passes *all, const struct collector *from,
    const struct collector *to,
    const Perfetto__Protos__ObservableEvents__CloneTriggerHit *hit)
{
	char err[ERROR_BYTES] = "out of memory";
	struct pass *p;

	if (hit->trigger_name == NULL)
		return;
	if (all->n == TRIGGER_PASSES_MAX) {
		say_lost(from, to, hit->trigger_name, "too many are under way");
		return;
	}
	if ((p = pass_new(all, from, to, hit)) != NULL)
		p->call = trigger_call_new(all->loop,
		    &(struct trigger_call_setup){
			.addr = &to->producer.addr,
			.how = &to->producer.how,
			.names = (const char *const *)&p->name, .n = 1,
			.producer = p->producer,
			.timeout_ms = to->timeout_ms,
			.fn = outcome_cb, .arg = p }, err, sizeof(err));
	if (p == NULL || p->call == NULL) {
		say_lost(from, to, hit->trigger_name, err);
		pass_free(p);
		return;
	}
	TAILQ_INSERT_TAIL(&all->list, p, link);
	all->n++;
}
