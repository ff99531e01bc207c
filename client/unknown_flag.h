/*
 * unknown_flag: the sentence about a flag that a command does not have.  Pure.
 */
#ifndef CLIENT_UNKNOWN_FLAG_H
#define CLIENT_UNKNOWN_FLAG_H

#include <stddef.h>

struct option;

/*
 * word is as it was typed ("--outt=x"); flags are the command's long options,
 * which one of them may be meant; command is its name ("record").
 */
void unknown_flag(const char *word, const struct option *flags,
    const char *command, char *err, size_t err_size);

#endif /* CLIENT_UNKNOWN_FLAG_H */
