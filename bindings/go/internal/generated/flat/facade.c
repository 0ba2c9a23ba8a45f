/* The facade, compiled into this package. */
#include "kvartet_flat.c"
