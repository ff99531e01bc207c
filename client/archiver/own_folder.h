/*
 * own_folder: the folder of an archive as the archiver has it: one archiver
 * at a time, and the socket by which `--status` finds it.
 */
#ifndef CLIENT_ARCHIVER_OWN_FOLDER_H
#define CLIENT_ARCHIVER_OWN_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct own_folder;
struct loop;

/* Opens the folder, and keeps other archivers out.  NULL with a sentence. */
struct own_folder *own_folder_open(const char *path, char *err,
    size_t err_size) MUST_CHECK;
/* Closes the socket, too; before the loop ends. */
void own_folder_close(struct own_folder *f);
/* A descriptor of the folder, the own_folder's. */
int own_folder_fd(const struct own_folder *f);

/* Bytes of an answer: they fit the buffer of a socket. */
#define OWN_FOLDER_ANSWER_MAX 65536u

/* Writes the answer to buf of OWN_FOLDER_ANSWER_MAX bytes; returns its length. */
typedef size_t (*own_folder_answer_fn)(void *arg, uint8_t *buf);

/*
 * Answers each connection of this user's, or root's, programs, on the loop.  -1
 * with a sentence.
 */
int own_folder_serve(struct own_folder *f, struct loop *loop,
    own_folder_answer_fn fn, void *arg, char *err, size_t err_size) MUST_CHECK;

/*
 * Asks the archiver of the folder.  Returns the length of its answer in buf, of
 * OWN_FOLDER_ANSWER_MAX bytes; -1 with a sentence.
 */
long own_folder_ask(const char *path, uint8_t *buf, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVER_OWN_FOLDER_H */
