/* Whatever is taken for an index is printed and taken for the same again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/cert/index.h"
#include "tests/fuzz/texts/texts.h"

void
fuzz_cert_index(const uint8_t *data, size_t size)
{
	struct cert_index x = { 0 }, y = { 0 };
	char err[256], *once, *twice;
	size_t n, m;

	if (cert_index_parse(&x, (const char *)data, size, err, sizeof(err)) <
	    0) {
		if (err[0] == '\0')
			abort();
		cert_index_done(&x);
		return;
	}
	if ((once = cert_index_text(&x, &n)) == NULL)
		abort();
	if (cert_index_parse(&y, once, n, err, sizeof(err)) < 0 || x.n != y.n)
		abort();
	if ((twice = cert_index_text(&y, &m)) == NULL || n != m ||
	    memcmp(once, twice, n) != 0)
		abort();
	free(once);
	free(twice);
	cert_index_done(&x);
	cert_index_done(&y);
}
