#include "service/session/uid_quota.h"

#include <stdlib.h>

/* Few uids are active on a machine: they are searched one by one. */
static struct uid_count *
find(struct uid_quota *q, uint32_t uid)
{
	size_t i;

	for (i = 0; i < q->n; i++)
		if (q->counts[i].uid == uid)
			return &q->counts[i];
	return NULL;
}

static struct uid_count *
add(struct uid_quota *q, uint32_t uid)
{
	size_t cap = q->cap == 0 ? 8 : q->cap * 2;
	struct uid_count *grown;

	if (q->n == q->cap) {
		grown = reallocarray(q->counts, cap, sizeof(*grown));
		if (grown == NULL)
			return NULL;
		q->counts = grown;
		q->cap = cap;
	}
	q->counts[q->n] = (struct uid_count){ .uid = uid, .n = 0 };
	return &q->counts[q->n++];
}

bool
uid_quota_take(struct uid_quota *q, uint32_t uid, uint32_t most)
{
	struct uid_count *c = find(q, uid);

	if (most == 0 || (c != NULL && c->n >= most))
		return false;
	if (c == NULL && (c = add(q, uid)) == NULL)
		return false;
	c->n++;
	return true;
}

void
uid_quota_give(struct uid_quota *q, uint32_t uid)
{
	struct uid_count *c = find(q, uid);

	if (c != NULL && --c->n == 0)
		*c = q->counts[--q->n];
}

void
uid_quota_done(struct uid_quota *q)
{
	free(q->counts);
	*q = (struct uid_quota){ .counts = NULL };
}
