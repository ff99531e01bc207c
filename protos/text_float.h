/*
 * text_float: floating point numbers of protobuf text format, independent of
 * the process's locale and its decimal point (libtributary is part of programs
 * that are not ours).
 */
#ifndef PROTOS_TEXT_FLOAT_H
#define PROTOS_TEXT_FLOAT_H

#include <stdbool.h>
#include <stddef.h>

/* Room for any number that is printed, with its NUL. */
#define TEXT_FLOAT_MAX 32

/* Longest number that is read, in bytes. */
#define TEXT_FLOAT_MAX_INPUT 512

/*
 * The value of s: digits with point, exponent and a final f at will, no sign;
 * out of range is infinity, or 0.  False when s is too long or no number.
 */
bool text_float_parse(const char *s, size_t len, double *out)
    __attribute__((__warn_unused_result__));

/* The nearest float; infinity where that is nearer than the largest. */
float text_float_narrow(double v);

/*
 * Prints enough digits to read back as v: 15 to 17, or 6 to 9 when single (v is
 * then exactly a float).  "inf", "-inf" and "nan" for values that are no
 * number.
 */
void text_float_print(double v, bool single, char out[TEXT_FLOAT_MAX]);

#endif /* PROTOS_TEXT_FLOAT_H */
