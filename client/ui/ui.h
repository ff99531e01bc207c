/*
 * ui: `tributary ui`: lets Perfetto's UI in a browser record through a
 * collector anywhere.  Starts tributary-web with --traced in its place, and
 * knows no HTTP.
 */
#ifndef CLIENT_UI_UI_H
#define CLIENT_UI_UI_H

int ui_main(int argc, char **argv);

#endif /* CLIENT_UI_UI_H */
