#include "client/ftrace/events/print_filter.h"

#include <string.h>

#include "client/ftrace/config/ftrace_config.h"

/* Steps over a prefix.  False: the text has another. */
static bool
skip(const char *prefix, const char **text, size_t *len)
{
	size_t n = strlen(prefix);

	if (*len < n || memcmp(*text, prefix, n) != 0)
		return false;
	*text += n;
	*len -= n;
	return true;
}

/* TYPE|PID|PREFIX, as atrace has it. */
static bool
matches_atrace(const struct ftrace_print_rule *rule, const char *text,
    size_t len)
{
	size_t digits = 0;

	if (!skip(rule->type, &text, &len) || !skip("|", &text, &len))
		return false;
	while (digits < len && text[digits] >= '0' && text[digits] <= '9')
		digits++;
	text += digits;
	len -= digits;
	return skip("|", &text, &len) && skip(rule->prefix, &text, &len);
}

static bool
matches(const struct ftrace_print_rule *rule, const char *text, size_t len)
{
	switch (rule->match) {
	case FTRACE_PRINT_PREFIX:
		return skip(rule->prefix, &text, &len);
	case FTRACE_PRINT_ATRACE:
		return matches_atrace(rule, text, len);
	}
	return false;
}

bool
print_filter_allows(const struct print_filter *f, const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (matches(&f->rules[i], text, len))
			return f->rules[i].allow;
	return true;
}
