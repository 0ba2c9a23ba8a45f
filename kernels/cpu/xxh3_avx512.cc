#define KVT_XXH3_FUNCTIONS kXxh3Avx512
#define KVT_XXH3_NAME "avx512"
#include "cpu/xxh3.inc"
