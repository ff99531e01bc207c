#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/printk_strings.h"
#include "client/ftrace/format/event_format.h"
#include "real_kernel.h"

static uint8_t *
read_all(const char *folder, const char *name, size_t *len)
{
	char path[4096];
	uint8_t *data;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if ((file = fopen(path, "rb")) == NULL)
		err(1, "%s", path);
	fseek(file, 0, SEEK_END);
	*len = (size_t)ftell(file);
	rewind(file);
	data = malloc(*len + 1);
	if (data == NULL || fread(data, 1, *len, file) != *len)
		err(1, "%s", path);
	data[*len] = '\0';
	fclose(file);
	return data;
}

static void
take_format(struct real_kernel *k, char *text, enum event_plan_form generic)
{
	char *group = text, reason[256];
	struct event_format *f;

	text = strchr(text, '\n');
	*text++ = '\0';
	f = event_format_parse(group, text, strlen(text), reason,
	    sizeof(reason));
	if (f == NULL)
		errx(1, "%s: %s", group, reason);
	if (f->id >= REAL_IDS || k->formats[f->id] != NULL)
		errx(1, "%s has an id of another: %u", f->name, f->id);
	k->formats[f->id] = f;
	if ((k->plans[f->id] = event_plan_new(f, generic)) == NULL)
		err(1, "plan");
}

struct real_kernel *
real_kernel_new(const char *folder, enum event_plan_form generic)
{
	struct real_kernel *k;
	char *text, *at, *next;
	size_t len;

	if ((k = calloc(1, sizeof(*k))) == NULL)
		err(1, NULL);
	k->layout = (struct page_layout){ .commit_offset = 8,
		.commit_size = 8, .data_offset = 16, .page_size = REAL_PAGE };
	if ((k->strings = printk_strings_new("", 0)) == NULL)
		err(1, NULL);
	text = (char *)read_all(folder, "formats", &len);
	for (at = text + 3; at != NULL; at = next) {
		next = strstr(at, "\n@@ ");
		if (next != NULL) {
			next[1] = '\0';
			next += 4;
		}
		take_format(k, at, generic);
	}
	free(text);
	return k;
}

void
real_kernel_free(struct real_kernel *k)
{
	size_t i;

	for (i = 0; i < REAL_IDS; i++) {
		event_format_free(k->formats[i]);
		event_plan_free(k->plans[i]);
	}
	printk_strings_free(k->strings);
	symbol_index_done(&k->symbols);
	pid_notes_done(&k->pids);
	free(k);
}

static size_t
find(const struct real_kernel *k, const char *name)
{
	size_t i;

	for (i = 0; i < REAL_IDS; i++)
		if (k->formats[i] != NULL &&
		    strcmp(k->formats[i]->name, name) == 0)
			return i;
	errx(1, "no %s", name);
}

const struct event_plan *
real_plan(const struct real_kernel *k, const char *name)
{
	return k->plans[find(k, name)];
}

const struct event_format *
real_format(const struct real_kernel *k, const char *name)
{
	return k->formats[find(k, name)];
}

struct translate_env
real_env(struct real_kernel *k)
{
	return (struct translate_env){ .symbols = &k->symbols,
		.strings = k->strings, .pids = &k->pids };
}

uint8_t *
real_pages(const char *folder, const char *name, size_t *len)
{
	uint8_t *pages = read_all(folder, name, len);

	if (*len == 0 || *len % REAL_PAGE != 0)
		errx(1, "%s is no file of pages", name);
	return pages;
}

unsigned
real_page_add(struct real_kernel *k, struct ftrace_bundle *b,
    const uint8_t *page)
{
	struct page_record record;
	struct page_reader r;
	unsigned n = 0;
	uint16_t id;

	if (!page_reader_init(&r, page, REAL_PAGE, &k->layout))
		return 0;
	while (page_reader_next(&r, &record)) {
		id = page_record_id(&record);
		if (id < REAL_IDS && k->plans[id] != NULL)
			n += ftrace_bundle_add(b, k->plans[id], record.time,
			    record.data, record.len) == EVENT_DONE;
	}
	return n;
}
