/*
 * record: the command `tributary record`.
 */
#ifndef CLIENT_RECORD_RECORD_H
#define CLIENT_RECORD_RECORD_H

/* argv[0] is "record".  Returns the exit status of the process. */
int record_main(int argc, char **argv);

#endif /* CLIENT_RECORD_RECORD_H */
