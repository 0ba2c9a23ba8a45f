/* Go: a slice, whose bytes the C side uses only during the call. Constants are constants. */
%typemap(gotype) (const uint8_t* DATA, size_t LEN), (uint8_t* BUF, size_t CAP) "[]byte"
%typemap(in) (const uint8_t* DATA, size_t LEN) {
  $1 = (uint8_t*)$input.array;
  $2 = (size_t)$input.len;
}
%typemap(in) (uint8_t* BUF, size_t CAP) {
  $1 = (uint8_t*)$input.array;
  $2 = (size_t)$input.len;
}
