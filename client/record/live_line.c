#include "client/record/live_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/text/colour.h"
#include "client/text/terminal.h"
#include "protos/plain_text.h"
#include "transport/base/human_numbers.h"

#define LINE_MAX_BYTES 256

struct record_live {
	bool enabled;
	bool quiet;
	bool coloured;
	bool shown; /* the cursor is at the end of the line */
	struct record_live *line; /* borrowed; that shows the line, or NULL */
	const char *name;         /* stands before sentences; with line */
};

size_t
record_live_format(char *out, size_t out_size, const struct record_numbers *n,
    unsigned columns)
{
	char elapsed[HUMAN_TEXT_MAX], expected[HUMAN_TEXT_MAX];
	char bytes[HUMAN_TEXT_MAX], count[HUMAN_TEXT_MAX];
	char producers[HUMAN_TEXT_MAX], losses[HUMAN_TEXT_MAX];
	uint64_t units = n->packets_known ? n->packets : n->chunks;
	bool timed = n->expected_ms != 0;
	size_t before, len;

	snprintf(out, out_size, "%s  %s%s%s  %s  %s %s%s  %s producer%s  ",
	    n->phase, human_ms(elapsed, n->elapsed_ms), timed ? " of " : "",
	    timed ? human_ms(expected, n->expected_ms) : "",
	    human_bytes(bytes, n->bytes), human_count(count, units),
	    n->packets_known ? "packet" : "chunk", human_s(units),
	    human_count(producers, n->producers), human_s(n->producers));
	before = strlen(out);
	snprintf(out + before, out_size - before, "%s lost", n->losses == 0 ?
	    "nothing" : human_count(losses, n->losses));
	len = strlen(out);
	if (columns != 0 && len >= columns)
		out[len = columns - 1] = '\0';
	return before < len ? before : len;
}

struct record_live *
record_live_new(bool quiet)
{
	struct record_live *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	l->quiet = quiet;
	l->enabled = !quiet && terminal_redraws(STDERR_FILENO);
	l->coloured = colour_is_on(stderr);
	return l;
}

struct record_live *
record_live_of(struct record_live *line, const char *name)
{
	struct record_live *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->quiet = line->quiet;
	l->line = line;
	l->name = name;
	return l;
}

void
record_live_free(struct record_live *l)
{
	if (l == NULL)
		return;
	record_live_clear(l);
	free(l);
}

bool
record_live_enabled(const struct record_live *l)
{
	return l->enabled;
}

void
record_live_show(struct record_live *l, const struct record_numbers *n)
{
	enum colour lost = n->losses == 0 ? COLOUR_NONE : COLOUR_BAD;
	struct winsize w = { .ws_col = 0 };
	char line[LINE_MAX_BYTES];
	size_t losses;

	if (!l->enabled)
		return;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) < 0)
		w.ws_col = 0;
	losses = record_live_format(line, sizeof(line), n, w.ws_col);
	/* The rest of the line is erased after the text: no flicker. */
	fprintf(stderr, "\r%.*s%s%s%s\033[K", (int)losses, line,
	    colour_begin(l->coloured, lost), line + losses,
	    colour_end(l->coloured, lost));
	fflush(stderr);
	l->shown = true;
}

void
record_live_clear(struct record_live *l)
{
	if (!l->shown)
		return;
	fprintf(stderr, "\r\033[K");
	fflush(stderr);
	l->shown = false;
}

void
record_live_say(struct record_live *l, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	record_live_clear(l->line != NULL ? l->line : l);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fputs("tributary: ", stderr);
	if (l->name != NULL)
		plain_printf(stderr, "%s: ", l->name);
	plain_text_put(stderr, text);
	if (text[0] == '\0' || text[strlen(text) - 1] != '\n')
		fputc('\n', stderr);
}

void
record_live_note(struct record_live *l, const char *sentence)
{
	if (!l->quiet)
		record_live_say(l, "%s", sentence);
}
