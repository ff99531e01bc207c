/*
 * fleet: `tributary fleet`, what several collectors need to be one service.
 */
#ifndef CLIENT_FLEET_FLEET_H
#define CLIENT_FLEET_FLEET_H

/* argv[0] is "fleet"; returns the exit status. */
int fleet_main(int argc, char **argv);

#endif /* CLIENT_FLEET_FLEET_H */
