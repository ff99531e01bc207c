/* top: `tributary top`, a live screen of what a collector does. */
#ifndef CLIENT_SHOW_TOP_H
#define CLIENT_SHOW_TOP_H

int top_main(int argc, char **argv);

#endif /* CLIENT_SHOW_TOP_H */
