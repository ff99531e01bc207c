/* inspect: `tributary inspect`, what is in a trace and what is not. */
#ifndef CLIENT_INSPECT_INSPECT_H
#define CLIENT_INSPECT_INSPECT_H

/* Returns the exit status that --help lists. */
int inspect_main(int argc, char **argv);

#endif /* CLIENT_INSPECT_INSPECT_H */
