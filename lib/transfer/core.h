// Core: what the connections of one node share. Thread-safe; it outlives every connection.
#ifndef KVARTET_LIB_TRANSFER_CORE_H_
#define KVARTET_LIB_TRANSFER_CORE_H_

#include <atomic>
#include <deque>
#include <functional>
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

  // Runs a task on a worker, if one comes to it before EndWork.
  void Work(std::function<void()> task);
  // Drops the tasks that no worker has begun, and waits for the others: never for the runtime's queue. Nobody
  // may call Work from then on.
  void EndWork();

  const std::shared_ptr<Runtime> runtime;
  const std::shared_ptr<net::Loop> loop;
  const std::unique_ptr<Operations> operations;
  const Identity identity;
  Counters counters;
  const std::shared_ptr<net::Traffic> traffic = std::make_shared<net::Traffic>();

 private:
  // What the workers share. They keep it alive, and nothing else of the node: it may be gone by then.
  struct Tasks {
    Mutex mu;
    CondVar idle;
    std::deque<std::function<void()>> waiting ABSL_GUARDED_BY(mu);
    size_t running ABSL_GUARDED_BY(mu) = 0;
  };

  Core(std::shared_ptr<Runtime> r, std::shared_ptr<net::Loop> l, std::unique_ptr<Operations> o,
       const Identity& i)
      : runtime(std::move(r)), loop(std::move(l)), operations(std::move(o)), identity(i) {}
  static void RunTask(Tasks* tasks);

  const std::shared_ptr<Tasks> tasks_ = std::make_shared<Tasks>();
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_CORE_H_
