/* fetch: `tributary fetch`: segments of an archive as one trace. */
#ifndef CLIENT_ARCHIVE_FETCH_FETCH_H
#define CLIENT_ARCHIVE_FETCH_FETCH_H

/* The command; returns its exit status. */
int fetch_main(int argc, char **argv);

#endif /* CLIENT_ARCHIVE_FETCH_FETCH_H */
