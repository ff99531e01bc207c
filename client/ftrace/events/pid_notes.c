#include "client/ftrace/events/pid_notes.h"

#include <stdlib.h>

/* Between two looks at them; no machine runs more threads in that time. */
#define NOTES_MAX (1u << 20)

void
pid_notes_done(struct pid_notes *notes)
{
	free(notes->pids);
	memset(notes, 0, sizeof(*notes));
}

void
pid_notes_renew(struct pid_notes *notes)
{
	memset(notes->slots, 0, sizeof(notes->slots));
}

void
pid_notes_append(struct pid_notes *notes, int32_t pid)
{
	uint32_t room = notes->room == 0 ? 64 : notes->room * 2;
	int32_t *pids;

	if (notes->n == notes->room) {
		pids = room > NOTES_MAX ? NULL :
		    realloc(notes->pids, room * sizeof(pids[0]));
		if (pids == NULL) {
			notes->n_missed++;
			return;
		}
		notes->pids = pids;
		notes->room = room;
	}
	notes->pids[notes->n++] = pid;
}
