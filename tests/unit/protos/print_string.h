/* text_print() into a string that the caller frees; NULL: out of memory. */
#ifndef TESTS_UNIT_PROTOS_PRINT_STRING_H
#define TESTS_UNIT_PROTOS_PRINT_STRING_H

#include <stdio.h>
#include <stdlib.h>

#include "protos/text_print.h"

static inline char *
print_string(const ProtobufCMessage *m)
{
	char *s = NULL;
	size_t len;
	FILE *f;
	int ret;

	if ((f = open_memstream(&s, &len)) == NULL)
		return NULL;
	ret = text_print(f, m, 0);
	if (fclose(f) != 0 || ret < 0) {
		free(s);
		return NULL;
	}
	return s;
}

#endif /* TESTS_UNIT_PROTOS_PRINT_STRING_H */
