/* web_program: becomes tributary-web, which is what speaks with browsers. */
#ifndef CLIENT_UI_WEB_PROGRAM_H
#define CLIENT_UI_WEB_PROGRAM_H

#include <stdbool.h>

/* Whether --help or -h is among the words. */
bool web_program_helps(int argc, char **argv);
/*
 * Runs `tributary-web FLAG argv[1]...` in place of this process.  Returns an
 * exit status where it cannot be, once it has said why.
 */
int web_program_run(const char *speaker, const char *flag, int argc,
    char **argv);

#endif /* CLIENT_UI_WEB_PROGRAM_H */
