#include "client/ftrace/events/printk_strings.h"

#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/address_line.h"

struct printk_string {
	uint64_t address;
	const char *text; /* in the struct's copy of the file */
};

struct printk_strings {
	size_t n;
	struct printk_string *all; /* owned; sorted by address */
	char *text;                /* owned */
};

/* 0xADDRESS : "TEXT" and nothing behind it; ends the text in place. */
static bool
parse(char *line, struct printk_string *s)
{
	char *text, *quote;

	if (strncmp(line, "0x", 2) != 0 ||
	    (text = address_line(line + 2, &s->address)) == NULL ||
	    strncmp(text, ": \"", 3) != 0)
		return false;
	text += 3;
	quote = strrchr(text, '"');
	if (quote == NULL || quote[1] != '\0')
		return false;
	*quote = '\0';
	s->text = text;
	return true;
}

static int
by_address(const void *a, const void *b)
{
	const struct printk_string *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static size_t
count_lines(const char *text, size_t len)
{
	size_t i, n = 1;

	for (i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

struct printk_strings *
printk_strings_new(const char *text, size_t len)
{
	struct printk_strings *s;
	char *line, *rest;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->all = calloc(count_lines(text, len), sizeof(s->all[0]));
	if (s->all == NULL || (s->text = strndup(text, len)) == NULL) {
		printk_strings_free(s);
		return NULL;
	}
	for (rest = s->text; (line = strsep(&rest, "\n")) != NULL;)
		if (parse(line, &s->all[s->n]))
			s->n++;
	qsort(s->all, s->n, sizeof(s->all[0]), by_address);
	return s;
}

void
printk_strings_free(struct printk_strings *s)
{
	if (s == NULL)
		return;
	free(s->all);
	free(s->text);
	free(s);
}

const char *
printk_strings_find(const struct printk_strings *s, uint64_t address)
{
	const struct printk_string key = { .address = address };
	const struct printk_string *found;

	found = bsearch(&key, s->all, s->n, sizeof(key), by_address);
	return found == NULL ? "" : found->text;
}
