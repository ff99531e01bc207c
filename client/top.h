/* top: `tributary top`, a live screen of what a collector does. */
#ifndef CLIENT_TOP_H
#define CLIENT_TOP_H

int top_main(int argc, char **argv);

#endif /* CLIENT_TOP_H */
