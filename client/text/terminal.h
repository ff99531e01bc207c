/* terminal: abilities of the terminal that a stream leads to. */
#ifndef CLIENT_TEXT_TERMINAL_H
#define CLIENT_TEXT_TERMINAL_H

#include <stdbool.h>

/*
 * Whether a line on this descriptor can be drawn anew: it is a terminal, and
 * TERM names one that is not "dumb".
 */
bool terminal_redraws(int fd);
/*
 * Whether the user's locale (LC_ALL, LC_CTYPE, LANG) writes UTF-8: a terminal
 * of such a user shows more than ASCII.
 */
bool terminal_has_utf8(void);

/* terminal_redraws() with its facts given; term NULL: not set.  Pure. */
bool terminal_redraws_as(bool is_terminal, const char *term);

#endif /* CLIENT_TEXT_TERMINAL_H */
