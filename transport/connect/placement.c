#include "transport/connect/placement.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/base/failure.h"

#define WEIGHT_BYTES 8

struct place {
	uint64_t weight;
	const char *collector;
	size_t at; /* in the list */
};

static int
check(const char *machine, const char *const *collectors, size_t n, char *err,
    size_t err_size)
{
	size_t i, j;

	if (n == 0)
		return FAILURE(err, err_size, "there is no collector to choose "
		    "from: name at least one");
	if (n > PLACEMENT_MAX)
		return FAILURE(err, err_size, "%zu collectors are more than "
		    "the %u that there may be", n, PLACEMENT_MAX);
	if (machine[0] == '\0')
		return FAILURE(err, err_size, "the machine's name, which "
		    "chooses its collector, is empty");
	for (i = 0; i < n; i++) {
		if (collectors[i][0] == '\0')
			return FAILURE(err, err_size, "the name of collector "
			    "%zu is empty", i + 1);
		for (j = 0; j < i; j++)
			if (strcmp(collectors[i], collectors[j]) == 0)
				return FAILURE(err, err_size, "the collector "
				    "%.200s is named twice: leave one of them "
				    "out", collectors[i]);
	}
	return 0;
}

/*
 * hash has been initialized: without a type it begins anew, and OpenSSL 3 does
 * not look the algorithm up again, which takes longer than the hash itself.
 */
static int
weigh(EVP_MD_CTX *hash, const char *machine, struct place *p)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	int i;

	if (EVP_DigestInit_ex(hash, NULL, NULL) != 1 ||
	    EVP_DigestUpdate(hash, machine, strlen(machine) + 1) != 1 ||
	    EVP_DigestUpdate(hash, p->collector, strlen(p->collector)) != 1 ||
	    EVP_DigestFinal_ex(hash, digest, NULL) != 1)
		return -1;
	p->weight = 0;
	for (i = 0; i < WEIGHT_BYTES; i++)
		p->weight = p->weight << 8 | digest[i];
	return 0;
}

/* Names tell equal weights apart, which are as good as impossible. */
static int
compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->collector, y->collector);
}

int
placement_order(const char *machine, const char *const *collectors, size_t n,
    size_t *order, char *err, size_t err_size)
{
	struct place places[PLACEMENT_MAX];
	EVP_MD_CTX *hash;
	bool weighed;
	size_t i;

	if (check(machine, collectors, n, err, err_size) != 0)
		return -1;
	/* Without a choice OpenSSL is not asked, which may crash without memory. */
	if (n == 1) {
		order[0] = 0;
		return 0;
	}
	if ((hash = EVP_MD_CTX_new()) == NULL)
		return FAILURE(err, err_size, "out of memory");
	weighed = EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1;
	for (i = 0; i < n && weighed; i++) {
		places[i] = (struct place){ .collector = collectors[i],
			.at = i };
		weighed = weigh(hash, machine, &places[i]) == 0;
	}
	EVP_MD_CTX_free(hash);
	if (!weighed)
		return FAILURE(err, err_size, "out of memory");
	qsort(places, n, sizeof(places[0]), compare);
	for (i = 0; i < n; i++)
		order[i] = places[i].at;
	return 0;
}
