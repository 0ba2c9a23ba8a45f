/* The one function of the Fortran run-time library that OpenBLAS's eigensolver calls (to join two option
 * letters into a name). Having it here, hidden, keeps the library free of a dependency on libgfortran. */
#include <stddef.h>
#include <string.h>

void _gfortran_concat_string(size_t to_len, char* to, size_t a_len, const char* a, size_t b_len,
                             const char* b);

void _gfortran_concat_string(size_t to_len, char* to, size_t a_len, const char* a, size_t b_len,
                             const char* b) {
  const size_t from_a = a_len < to_len ? a_len : to_len;
  const size_t from_b = b_len < to_len - from_a ? b_len : to_len - from_a;
  memcpy(to, a, from_a);
  memcpy(to + from_a, b, from_b);
  memset(to + from_a + from_b, ' ', to_len - from_a - from_b);
}
