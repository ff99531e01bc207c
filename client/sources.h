/* sources: `tributary sources`. */
#ifndef CLIENT_SOURCES_H
#define CLIENT_SOURCES_H

int sources_main(int argc, char **argv);

#endif /* CLIENT_SOURCES_H */
