/*
 * protovm_driver: the machine behind a pipe, for test_protovm_model.py.
 *
 * Reads frames from standard input: a letter, a length (32 bits, little-endian)
 * and so many bytes.  P makes a machine with that program, S sets its state, A
 * applies a packet; each is answered by its result (of P and S: 0 or 1), and
 * the length and bytes of the state.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/protovm/protovm.h"
#include "transport/wire/pb_writer.h"

#define LIMIT ((size_t)64 << 20)

static uint8_t
make(struct protovm **vm, const uint8_t *data, size_t len)
{
	struct protovm_program *p;
	char err[256];

	protovm_free(*vm);
	*vm = NULL;
	if ((p = protovm_program_new(data, len, err, sizeof(err))) == NULL) {
		fprintf(stderr, "refused: %s\n", err);
		return 1;
	}
	*vm = protovm_new(p, LIMIT);
	protovm_program_unref(p);
	return *vm == NULL;
}

static uint8_t
run(struct protovm **vm, char letter, const uint8_t *data, size_t len)
{
	if (letter == 'P')
		return make(vm, data, len);
	if (*vm == NULL)
		return 1;
	if (letter == 'S')
		return protovm_set_state(*vm, data, len) != 0;
	return (uint8_t)protovm_apply(*vm, data, len);
}

static int
answer(const struct protovm *vm, uint8_t result)
{
	struct pb_writer state;
	uint32_t len;
	int rc = -1;

	pb_writer_init(&state);
	if (vm != NULL)
		protovm_state(vm, &state);
	len = (uint32_t)state.len;
	if (!state.failed && putchar(result) != EOF &&
	    fwrite(&len, sizeof(len), 1, stdout) == 1 &&
	    (len == 0 || fwrite(state.data, len, 1, stdout) == 1))
		rc = 0;
	pb_writer_done(&state);
	return rc;
}

static int
turn(struct protovm **vm, char letter, const uint8_t *data, size_t len)
{
	uint8_t result = run(vm, letter, data, len);

	return answer(*vm, result);
}

int
main(void)
{
	struct protovm *vm = NULL;
	uint8_t *data;
	uint32_t len;
	int letter, rc = 0;

	while (rc == 0 && (letter = getchar()) != EOF) {
		if (fread(&len, sizeof(len), 1, stdin) != 1 ||
		    (data = malloc(len + (len == 0))) == NULL)
			return 1;
		if (len > 0 && fread(data, len, 1, stdin) != 1)
			rc = 1;
		else
			rc = turn(&vm, (char)letter, data, len);
		free(data);
	}
	protovm_free(vm);
	return rc != 0 || fflush(stdout) != 0;
}
