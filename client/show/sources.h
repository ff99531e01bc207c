/* sources: `tributary sources`, the data sources that a collector knows. */
#ifndef CLIENT_SHOW_SOURCES_H
#define CLIENT_SHOW_SOURCES_H

int sources_main(int argc, char **argv);

#endif /* CLIENT_SHOW_SOURCES_H */
