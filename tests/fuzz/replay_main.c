/*
 * Runs a fuzz target over the files of its corpus folder, without libFuzzer.
 * usage: replay_X FOLDER|FILE...
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define INPUT_MAX (16u * 1024u * 1024u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	struct stat st;
	size_t n;
	int rc = -1;

	if (f == NULL || fstat(fileno(f), &st) < 0 || st.st_size > INPUT_MAX)
		goto out;
	/* of the exact size, so that a sanitizer sees one byte too far */
	if ((data = malloc((size_t)st.st_size + (st.st_size == 0))) == NULL)
		goto out;
	n = fread(data, 1, (size_t)st.st_size, f);
	if (n != (size_t)st.st_size)
		goto out;
	LLVMFuzzerTestOneInput(data, n);
	rc = 0;
out:
	if (rc < 0)
		fprintf(stderr, "%s: cannot read\n", path);
	free(data);
	if (f != NULL)
		fclose(f);
	return rc;
}

static int
is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* In the same order on each machine, as targets keep some state. */
static int
run_folder(const char *path)
{
	struct dirent **all;
	char file[4096];
	int i, n, done = 0;

	if ((n = scandir(path, &all, is_visible, alphasort)) < 0)
		return -1;
	for (i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, all[i]->d_name);
		if (done >= 0)
			done = run_file(file) < 0 ? -1 : done + 1;
		free(all[i]);
	}
	free(all);
	return done;
}

int
main(int argc, char **argv)
{
	struct stat st;
	int i, n, total = 0;

	for (i = 1; i < argc; i++) {
		if (stat(argv[i], &st) < 0) {
			perror(argv[i]);
			return 1;
		}
		n = S_ISDIR(st.st_mode) ? run_folder(argv[i]) :
		    run_file(argv[i]) < 0 ? -1 : 1;
		if (n < 0)
			return 1;
		total += n;
	}
	printf("%d inputs\n", total);
	/* a corpus that is not found is no success */
	return total == 0;
}
