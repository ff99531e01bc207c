#include "transport/base/flag_words.h"

#include <stdio.h>
#include <string.h>

#include "protos/nearest.h"
#include "transport/base/failure.h"

#define LIST_MAX 256

static const char *
word_at(const struct flag_words *words, size_t i)
{
	const char *const *line;

	line = (const void *)((const char *)words->lines + i * words->size);
	return *line;
}

/* "init, issue or show" */
static const char *
list(char out[LIST_MAX], const struct flag_words *words)
{
	size_t i, len = 0;

	out[0] = '\0';
	for (i = 0; i < words->n && len < LIST_MAX; i++)
		len += (size_t)snprintf(out + len, LIST_MAX - len, "%s%s",
		    i == 0 ? "" : i + 1 == words->n ? " or " : ", ",
		    word_at(words, i));
	return out;
}

int
flag_words_find(const struct flag_words *words, const char *word, size_t *at,
    char *err, size_t err_size)
{
	char all[LIST_MAX];
	struct nearest n;
	size_t i;

	if (word == NULL)
		return FAILURE(err, err_size, "say what to do: %s; "
		    "see tributary %s --help", list(all, words),
		    words->command);
	nearest_init(&n, word, strlen(word));
	for (i = 0; i < words->n; i++) {
		if (strcmp(word_at(words, i), word) == 0) {
			*at = i;
			return 0;
		}
		nearest_offer(&n, word_at(words, i));
	}
	if (nearest_best(&n) != NULL)
		return FAILURE(err, err_size, "there is no command %s %.40s; "
		    "did you mean %s?", words->command, word,
		    nearest_best(&n));
	return FAILURE(err, err_size, "there is no command %s %.40s: say %s",
	    words->command, word, list(all, words));
}
