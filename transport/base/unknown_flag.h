/*
 * unknown_flag: the sentence about a flag that a command does not have.  Pure.
 */
#ifndef TRANSPORT_BASE_UNKNOWN_FLAG_H
#define TRANSPORT_BASE_UNKNOWN_FLAG_H

#include <stddef.h>

struct option;

/*
 * word is as it was typed ("--outt=x"); flags are the command's long options,
 * one of which may be meant; help says where they are listed ("see tributary
 * record --help").
 */
void unknown_flag(const char *word, const struct option *flags,
    const char *help, char *err, size_t err_size);

#endif /* TRANSPORT_BASE_UNKNOWN_FLAG_H */
