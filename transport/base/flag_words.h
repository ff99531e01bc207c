/*
 * flag_words: the word that a command such as `tributary cert` begins with, by
 * a table of those that there are.
 */
#ifndef TRANSPORT_BASE_FLAG_WORDS_H
#define TRANSPORT_BASE_FLAG_WORDS_H

#include <stddef.h>

#include "transport/base/compiler.h"

/* Lines of `size` bytes each, whose first member is a const char *: the word. */
struct flag_words {
	const char *command; /* "cert" */
	const void *lines;
	size_t size, n;
};
#define FLAG_WORDS(command, table)                                            \
	((struct flag_words){ (command), (table), sizeof((table)[0]),         \
	    sizeof(table) / sizeof((table)[0]) })

/*
 * Sets *at to the line of the word; NULL: none was given.  -1 with a sentence
 * that names the word that is meant, or all.
 */
int flag_words_find(const struct flag_words *words, const char *word,
    size_t *at, char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_BASE_FLAG_WORDS_H */
