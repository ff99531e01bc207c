#include "protos/nearest.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* A shorter prefix would match too many names. */
#define PREFIX_MIN 3

static unsigned
min3(unsigned a, unsigned b, unsigned c)
{
	if (b < a)
		a = b;
	return c < a ? c : a;
}

/*
 * Edit distance with swaps of neighbours ("optimal string alignment"), in
 * three rows.  Both lengths are at most NEAREST_MAX_WORD.
 */
static unsigned
distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][NEAREST_MAX_WORD + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2], *spare;
	size_t i, j;

	for (j = 0; j <= b_len; j++)
		last[j] = (unsigned)j;
	for (i = 1; i <= a_len; i++) {
		row[0] = (unsigned)i;
		for (j = 1; j <= b_len; j++) {
			row[j] = min3(last[j] + 1, row[j - 1] + 1,
			    last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[b_len];
}

/* Whether one is the beginning of the other: "duration", "duration_ms". */
static bool
begins(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t n = a_len < b_len ? a_len : b_len;

	return n >= PREFIX_MIN && strncasecmp(a, b, n) == 0;
}

void
nearest_init(struct nearest *n, const char *word, size_t len)
{
	n->word = word;
	n->len = len;
	n->best = NULL;
	n->best_cost = 0;
}

void
nearest_offer(struct nearest *n, const char *candidate)
{
	size_t len = strlen(candidate);
	unsigned cost;

	if (n->len == 0 || n->len > NEAREST_MAX_WORD || len > NEAREST_MAX_WORD)
		return;
	if (len == n->len && strncasecmp(n->word, candidate, len) == 0)
		cost = 0;
	else if ((cost = distance(n->word, n->len, candidate, len)) >
	    1 + (unsigned)n->len / 4) {
		if (!begins(n->word, n->len, candidate, len))
			return;
		/* Behind every word that is near in its letters. */
		cost += NEAREST_MAX_WORD;
	}
	if (n->best == NULL || cost < n->best_cost) {
		n->best = candidate;
		n->best_cost = cost;
	}
}

const char *
nearest_best(const struct nearest *n)
{
	return n->best;
}
