// The other process of the fault tests: serves `count` frames of `tokens` tokens until its input ends.
// Usage: node_peer URL COUNT TOKENS
#include <kvartet/kvartet.h>

#include <cstdio>
#include <cstdlib>

#include "unit/node/fixture.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  kvt_test::Side side({.listen = argv[1]});
  if (side.opened != KVT_OK) return 3;
  const auto count = static_cast<uint32_t>(std::atoi(argv[2]));
  const auto tokens = static_cast<uint32_t>(std::atoi(argv[3]));
  for (uint32_t i = 0; i < count; ++i)
    side.Put(kvt_test::MakeKey(i), kvt_test::MakeFrame(side.model, kvt_test::MakeKey(i), tokens, i));
  std::printf("%s\n", side.url().c_str());
  std::fflush(stdout);
  return std::getchar() == EOF ? 0 : 1;
}
