/* session_orders: `tributary stop`, `tributary flush` and `tributary start`. */
#ifndef CLIENT_SESSION_ORDERS_H
#define CLIENT_SESSION_ORDERS_H

/* The exit status. */
int stop_main(int argc, char **argv);
int flush_main(int argc, char **argv);
int start_main(int argc, char **argv);

#endif /* CLIENT_SESSION_ORDERS_H */
