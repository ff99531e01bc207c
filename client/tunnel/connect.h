/*
 * connect: `tributary connect`, the far end of an ssh stream: it carries its
 * standard input and output to the collector's socket, or to a local producer.
 */
#ifndef CLIENT_TUNNEL_CONNECT_H
#define CLIENT_TUNNEL_CONNECT_H

/* argv[0] is "connect"; returns the exit status. */
int connect_main(int argc, char **argv);

#endif /* CLIENT_TUNNEL_CONNECT_H */
