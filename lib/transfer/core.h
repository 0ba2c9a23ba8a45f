// Core: what the connections of one node share. Thread-safe; it outlives every connection.
#ifndef KVARTET_LIB_TRANSFER_CORE_H_
#define KVARTET_LIB_TRANSFER_CORE_H_

#include <atomic>
#include <memory>

#include "base/operations.h"
#include "base/runtime.h"
#include "codec/frame.h"
#include "kvartet/transfer.h"
#include "net/channel.h"

namespace kvt::transfer {

// Who a node is in a handshake.
struct Identity {
  uint16_t version_min = KVT_WIRE_VERSION, version_max = KVT_WIRE_VERSION;
  std::array<uint8_t, KVT_FINGERPRINT_BYTES> model{};
  NamespaceDigest namespace_digest{};
  uint64_t epoch = 0;  // random: a restarted node is another one
  uint32_t stall_ms = 2000;
  uint64_t max_frame_bytes = uint64_t{1} << 30;
};

struct Counters {
  std::atomic<uint32_t> connections{0};
  std::atomic<uint64_t> frames_sent{0}, frames_received{0}, checksums{0}, refused_version{0},
      refused_model{0}, refused_namespace{0}, refused_limit{0}, corrupt{0};

  // Counts a refused handshake, a broken message or a bad frame by its reason.
  void Count(const Status& reason);
};

// Limits that both sides of a connection keep.
inline constexpr size_t kMaxRequests = 256;   // requests outstanding
inline constexpr size_t kMaxKeys = 1u << 20;  // keys of them
inline constexpr size_t kKeysPerMessage = 1u << 14;
inline constexpr size_t kItemsPerMessage = 64;        // frames that share a message
inline constexpr uint64_t kSharedPayload = 1u << 20;  // bytes of frames that share a message
inline constexpr uint64_t kQueueBytes = 4u
                                        << 20;  // payload queued on a connection before the next is fetched

class Core {
 public:
  static StatusOr<std::shared_ptr<Core>> Create(std::shared_ptr<Runtime> runtime, const Identity& identity);

  // Checks a received frame whole: structure, every checksum, model and namespace; `key` may be null.
  Status CheckFrame(Bytes frame, const Key* key);

  // Runs a task on a worker; Idle waits for all of them.
  void Work(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mu_);
  void WaitForWork() ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<Runtime> runtime;
  const std::shared_ptr<net::Loop> loop;
  const std::unique_ptr<Operations> operations;
  const Identity identity;
  Counters counters;
  const std::shared_ptr<net::Traffic> traffic = std::make_shared<net::Traffic>();

 private:
  Core(std::shared_ptr<Runtime> r, std::shared_ptr<net::Loop> l, std::unique_ptr<Operations> o,
       const Identity& i)
      : runtime(std::move(r)), loop(std::move(l)), operations(std::move(o)), identity(i) {}

  Mutex mu_;
  CondVar idle_;
  size_t working_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_CORE_H_
