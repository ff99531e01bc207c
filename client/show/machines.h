/* machines: `tributary machines`, the machines that a collector knows. */
#ifndef CLIENT_SHOW_MACHINES_H
#define CLIENT_SHOW_MACHINES_H

/* The exit status. */
int machines_main(int argc, char **argv);

#endif /* CLIENT_SHOW_MACHINES_H */
