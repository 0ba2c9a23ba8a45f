#define KVT_XXH3_FUNCTIONS kXxh3Avx2
#define KVT_XXH3_NAME "avx2"
#include "cpu/xxh3.inc"
