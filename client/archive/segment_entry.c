#include "client/archive/segment_entry.h"

#include <stdlib.h>

void
segment_entry_done(struct segment_entry *e)
{
	size_t i;

	for (i = 0; i < e->n_machines; i++)
		free(e->machines[i].name);
	for (i = 0; i < e->n_losses; i++) {
		free(e->losses[i].text);
		free(e->losses[i].cause);
	}
	for (i = 0; i < e->n_triggers; i++) {
		free(e->triggers[i].name);
		free(e->triggers[i].producer);
	}
	for (i = 0; i < e->n_data_sources; i++)
		free(e->data_sources[i]);
	for (i = 0; i < e->n_processes; i++)
		free(e->processes[i].name);
	free(e->machines);
	free(e->losses);
	free(e->triggers);
	free(e->data_sources);
	free(e->processes);
	free(e->path);
	free(e->verdict);
	free(e->problem);
	free(e->recording);
	free(e->machine);
	*e = (struct segment_entry){ .bytes = 0 };
}
