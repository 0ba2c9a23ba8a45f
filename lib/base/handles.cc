#include "base/handles.h"

#include <vector>

#include "base/mutex.h"

namespace kvt {
namespace {

constexpr uint32_t kGenerations = 1u << 24;

const char* TypeName(uint64_t type) {
  switch (static_cast<HandleType>(type)) {
    case HandleType::kRuntime:
      return "runtime";
    case HandleType::kModel:
      return "model";
    case HandleType::kCodec:
      return "codec";
    case HandleType::kCache:
      return "cache";
    case HandleType::kNode:
      return "node";
    case HandleType::kPeer:
      return "peer";
    case HandleType::kStream:
      return "stream";
    case HandleType::kVerifier:
      return "verifier";
    case HandleType::kMeter:
      return "meter";
    case HandleType::kCalibration:
      return "calibration";
    case HandleType::kPlanner:
      return "planner";
  }
  return "unknown";
}

class Table {
 public:
  uint64_t Insert(HandleType type, std::shared_ptr<void> object) {
    MutexLock lock(&mu_);
    uint32_t slot;
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    } else {
      slot = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    }
    Slot& s = slots_[slot];
    s.type = type;
    s.object = std::move(object);
    return (static_cast<uint64_t>(type) << 56) | (static_cast<uint64_t>(s.generation) << 32) | slot;
  }

  StatusOr<std::shared_ptr<void>> Find(HandleType type, uint64_t id) {
    MutexLock lock(&mu_);
    const Slot* s = Live(id);
    if (s == nullptr) {
      return Error(KVT_ERR_STALE_HANDLE,
                   absl::StrCat(TypeName(static_cast<uint64_t>(type)), " handle ", id,
                                id == 0 ? " is null" : " is stale or was never given out"));
    }
    if (s->type != type) {
      return Error(KVT_ERR_WRONG_HANDLE,
                   absl::StrCat("handle ", id, " is a ", TypeName(static_cast<uint64_t>(s->type)), ", not a ",
                                TypeName(static_cast<uint64_t>(type))));
    }
    return s->object;
  }

  std::shared_ptr<void> Remove(HandleType type, uint64_t id) {
    MutexLock lock(&mu_);
    Slot* s = Live(id);
    if (s == nullptr || s->type != type) return nullptr;
    std::shared_ptr<void> object = std::move(s->object);
    s->object = nullptr;
    // A slot whose generations are used up is retired: an old id never comes back to life.
    if (++s->generation < kGenerations) free_.push_back(static_cast<uint32_t>(id));
    return object;
  }

 private:
  struct Slot {
    uint32_t generation = 1;
    HandleType type{};
    std::shared_ptr<void> object;
  };

  Slot* Live(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const uint32_t slot = static_cast<uint32_t>(id);
    if (slot >= slots_.size()) return nullptr;
    Slot& s = slots_[slot];
    if (s.object == nullptr || s.generation != ((id >> 32) & (kGenerations - 1)) ||
        (id >> 56) != static_cast<uint64_t>(s.type))
      return nullptr;
    return &s;
  }

  Mutex mu_;
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mu_);
  std::vector<uint32_t> free_ ABSL_GUARDED_BY(mu_);
};

// Never destroyed, so handles stay usable while the process exits.
Table& TheTable() {
  static Table* table = new Table;
  return *table;
}

}  // namespace

uint64_t InsertHandle(HandleType type, std::shared_ptr<void> object) {
  return TheTable().Insert(type, std::move(object));
}
StatusOr<std::shared_ptr<void>> FindHandle(HandleType type, uint64_t id) { return TheTable().Find(type, id); }
std::shared_ptr<void> RemoveHandle(HandleType type, uint64_t id) { return TheTable().Remove(type, id); }

}  // namespace kvt
