/*
 * A library that a program loads and unloads, with a category and names of its
 * own.  Two are made of this file, whose names are of the same length (PLUGIN):
 * the literals of the one come to be where the other's have been.
 */
#include <tributary/track_event.h>

TRIBUTARY_CATEGORY(plugin, "plugin." PLUGIN, "", "");

const char *plugin_run(int n);

/* Returns a name of its own, to tell where it is. */
const char *
plugin_run(int n)
{
	TRIBUTARY_SLICE(plugin, "slice of " PLUGIN,
	    tributary_int("number of " PLUGIN, n), TRIBUTARY_HERE);
	TRIBUTARY_INSTANT(plugin, "instant of " PLUGIN);
	TRIBUTARY_INSTANT(plugin, "instant of " PLUGIN);
	return PLUGIN;
}
