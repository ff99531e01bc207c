/*
 * find_nothing: a sentence on what an archive has, where it has nothing that
 * was asked for.
 */
#ifndef CLIENT_ARCHIVE_FIND_FIND_NOTHING_H
#define CLIENT_ARCHIVE_FIND_FIND_NOTHING_H

struct catalog;
struct selection;

/* Writes it to stderr, as said by "tributary find". */
void find_nothing_say(const char *speaker, struct catalog *c,
    const struct selection *s);

#endif /* CLIENT_ARCHIVE_FIND_FIND_NOTHING_H */
