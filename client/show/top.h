/* top: `tributary top`, a live screen of a collector's sessions and rates. */
#ifndef CLIENT_SHOW_TOP_H
#define CLIENT_SHOW_TOP_H

int top_main(int argc, char **argv);

#endif /* CLIENT_SHOW_TOP_H */
