/* archive: `tributary archive`, the upkeep of an archive and its catalogue. */
#ifndef CLIENT_ARCHIVE_COMMAND_ARCHIVE_H
#define CLIENT_ARCHIVE_COMMAND_ARCHIVE_H

int archive_main(int argc, char **argv);

#endif /* CLIENT_ARCHIVE_COMMAND_ARCHIVE_H */
