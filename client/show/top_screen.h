/*
 * top_screen: the terminal as one screen that is redrawn, and its keys.
 * Restores the terminal also when a signal ends the program or Ctrl-Z stops it.
 * One at a time in a process.
 */
#ifndef CLIENT_SHOW_TOP_SCREEN_H
#define CLIENT_SHOW_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct loop;
struct top_screen;

/* Whether standard output is a terminal that top_screen can draw on. */
bool top_screen_is_there(void);

struct top_screen_ops {
	void (*quit)(void *arg); /* q, Ctrl-C, SIGTERM, SIGHUP */
	void (*draw)(void *arg); /* space, a new size, continued after Ctrl-Z */
};

/* NULL with errno. */
struct top_screen *top_screen_new(struct loop *l,
    const struct top_screen_ops *ops, void *arg) MUST_CHECK;
/* Restores the terminal. */
void top_screen_free(struct top_screen *s);

void top_screen_size(int *columns, size_t *lines);
/* Texts that go before a drawing, behind each of its lines, and at its end. */
extern const char top_screen_home[], top_screen_newline[], top_screen_rest[];

#endif /* CLIENT_SHOW_TOP_SCREEN_H */
