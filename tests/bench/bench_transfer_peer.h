// Other programs that the transfer bars are compared with. Single-threaded.
#ifndef KVARTET_TESTS_BENCH_BENCH_TRANSFER_PEER_H_
#define KVARTET_TESTS_BENCH_BENCH_TRANSFER_PEER_H_

#include <string>

namespace kvt::bench {

// iperf3 over loopback, one stream of 1 MiB writes: "3.41 GB/s", or "absent".
std::string Iperf3();

// The best of Mooncake's transfer_engine_bench at blocks of 64 KiB in batches of 128; 0 when KVT_BENCH_PEER
// names no program that runs.
struct MooncakeRate {
  double gb_per_s = 0;
  std::string settings;
};
MooncakeRate Mooncake64k();

}  // namespace kvt::bench

#endif  // KVARTET_TESTS_BENCH_BENCH_TRANSFER_PEER_H_
