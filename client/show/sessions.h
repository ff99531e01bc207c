/* sessions: `tributary sessions`, the sessions of a collector. */
#ifndef CLIENT_SHOW_SESSIONS_H
#define CLIENT_SHOW_SESSIONS_H

/* The exit status. */
int sessions_main(int argc, char **argv);

#endif /* CLIENT_SHOW_SESSIONS_H */
