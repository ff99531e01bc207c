#include "client/text/sparkline.h"

/* Bars above the lowest one. */
#define STEPS 7

static int
bar_of(double value, double most)
{
	int bar;

	if (value <= 0)
		return 0;
	bar = (int)(value / most * STEPS + 0.5);
	return bar == 0 ? 1 : bar;
}

char *
sparkline(char *out, size_t size, const double *values, size_t n)
{
	double most = 0;
	size_t i, len = 0;

	for (i = 0; i < n; i++)
		if (values[i] > most)
			most = values[i];
	for (i = 0; i < n && len + SPARKLINE_BAR < size; i++) {
		if (values[i] < 0) {
			out[len++] = ' ';
			continue;
		}
		out[len++] = '\xe2';
		out[len++] = '\x96';
		out[len++] = (char)(0x81 + bar_of(values[i], most));
	}
	out[len] = '\0';
	return out;
}
