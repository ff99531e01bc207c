/*
 * session_pick: chooses sessions by the words of a command line.  Pure.
 */
#ifndef CLIENT_COMMAND_SESSION_PICK_H
#define CLIENT_COMMAND_SESSION_PICK_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

struct Tributary__QuerySessionsReply;
struct Tributary__SessionState;

struct session_words {
	const char *const *words;
	size_t n;
	bool patterns; /* words may be patterns */
};

/*
 * A word is the id of a session or else its unique_session_name; with patterns,
 * "robot-*" chooses all sessions with such names.  Each session comes once, in
 * the order of the reply; no words: all.  A name chooses a clone only where no
 * other session has that name.
 *
 * out has room for all sessions of the reply and borrows from it.  Returns how
 * many were chosen; -1 with a sentence, which names similar sessions.
 */
int session_pick(const struct Tributary__QuerySessionsReply *r,
    const struct session_words *words,
    const struct Tributary__SessionState **out, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_COMMAND_SESSION_PICK_H */
