/*
 * stop_flush_start: `tributary stop`, flush, start and rotate.
 */
#ifndef CLIENT_ORDERS_STOP_FLUSH_START_H
#define CLIENT_ORDERS_STOP_FLUSH_START_H

/* The exit status. */
int stop_main(int argc, char **argv);
int flush_main(int argc, char **argv);
int start_main(int argc, char **argv);
int rotate_main(int argc, char **argv);

#endif /* CLIENT_ORDERS_STOP_FLUSH_START_H */
