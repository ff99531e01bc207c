/* session_stats: `tributary stats`, the statistics of sessions' buffers. */
#ifndef CLIENT_SHOW_SESSION_STATS_H
#define CLIENT_SHOW_SESSION_STATS_H

/* The exit status. */
int stats_main(int argc, char **argv);

#endif /* CLIENT_SHOW_SESSION_STATS_H */
