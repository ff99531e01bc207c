/* find: `tributary find`: which segments of an archive have a moment. */
#ifndef CLIENT_ARCHIVE_FIND_FIND_H
#define CLIENT_ARCHIVE_FIND_FIND_H

/* The command; returns its exit status. */
int find_main(int argc, char **argv);

#endif /* CLIENT_ARCHIVE_FIND_FIND_H */
