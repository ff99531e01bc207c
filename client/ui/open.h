/* open: `tributary open`: shows a trace in Perfetto's UI. */
#ifndef CLIENT_UI_OPEN_H
#define CLIENT_UI_OPEN_H

/*
 * The command.  Becomes tributary-web --open, so that it returns, with an exit
 * status, only where that cannot be.
 */
int open_main(int argc, char **argv);

#endif /* CLIENT_UI_OPEN_H */
