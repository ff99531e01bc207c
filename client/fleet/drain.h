/*
 * drain: `tributary fleet drain`, which has the relays of collectors go to
 * others, and waits until they have.
 */
#ifndef CLIENT_FLEET_DRAIN_H
#define CLIENT_FLEET_DRAIN_H

/* argv[0] is "drain"; returns the exit status. */
int fleet_drain_main(int argc, char **argv);

#endif /* CLIENT_FLEET_DRAIN_H */
