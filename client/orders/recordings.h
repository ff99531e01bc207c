/* recordings: `tributary recordings`. */
#ifndef CLIENT_ORDERS_RECORDINGS_H
#define CLIENT_ORDERS_RECORDINGS_H

/* Returns the exit status. */
int recordings_main(int argc, char **argv);

#endif /* CLIENT_ORDERS_RECORDINGS_H */
