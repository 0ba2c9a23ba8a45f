// A hostile peer that this node connected to: any answers to a pull of two keys (request 1), a push of one
// frame (request 2) and a pulled stream (request 3). All three end, and nothing but their memory is written.
#include <unistd.h>

#include "fuzz/peer.h"
#include "transfer/pull_stream.h"
#include "transfer/push.h"

namespace {

using kvt::fuzz::Require;
namespace net = kvt::net;
namespace transfer = kvt::transfer;

constexpr size_t kSlotBytes = 1024, kParts = 2;

// What the operations write to; on the heap, where every byte beyond is watched.
struct Memory {
  std::vector<uint8_t> pulled = std::vector<uint8_t>(2 * kSlotBytes);
  std::vector<uint8_t> streamed = std::vector<uint8_t>(kParts * kSlotBytes);
  std::vector<kvt_status_t> pull_statuses = std::vector<kvt_status_t>(2);
  std::vector<kvt_status_t> push_statuses = std::vector<kvt_status_t>(1);
  std::vector<uint64_t> lengths = std::vector<uint64_t>(2);
  std::vector<uint64_t> part_offsets = std::vector<uint64_t>(kParts);
  std::vector<uint64_t> part_lengths = std::vector<uint64_t>(kParts);
};

class World {
 public:
  World() {
    const auto model = kvt::fuzz::SmallModel();
    kvt::fuzz::Rows rows(model, 4);
    rows.Fill();
    frame_ = kvt::fuzz::Encode(**kvt::fuzz::MakeCodec(model, "raw"), rows.view());
    place_ = *net::Place::Parse(absl::StrCat("unix:/tmp/kvt-fuzz-", getpid(), ".sock"));
    listener_ = std::make_unique<net::Listener>(*net::Listener::Open(place_));
  }

  void Run(bool greet, kvt::Bytes script) {
    Memory memory;
    net::Loop* const loop = core_->loop.get();
    {
      const auto remote = std::make_shared<transfer::Remote>(core_, place_, nullptr);
      bool answered = false, ready = false;
      remote->Connect("", [&](kvt::Status status) {
        answered = true;
        ready = status.ok();
      });
      kvt::fuzz::TurnLoop(loop);
      net::Fd peer = *listener_->Accept();
      Require(peer.valid());
      if (greet) {
        kvt::fuzz::SendHello(*core_, peer.get());
        kvt::fuzz::TurnUntil(loop, [&] { return answered; });
        Require(ready);
        Submit(remote.get(), &memory);
      }
      kvt::fuzz::SendScript(loop, peer.get(), script);
      peer.Reset();
      kvt::fuzz::TurnUntil(loop, [&] { return remote->closed(); });
      Require(answered);
    }
    RequireEnded(greet ? 3 : 0);
    Require(core_->counters.connections == 0 && runtime_->memory_used() == 0);
  }

 private:
  void Submit(transfer::Remote* remote, Memory* memory) {
    const std::vector<kvt::Key> keys(2);
    const kvt::Deadline deadline = kvt::Deadline::After(std::chrono::hours(1));
    Require(remote
                ->Submit(std::make_shared<transfer::PullOp>(
                             keys, memory->pulled.data(), kSlotBytes,
                             transfer::Results{memory->pull_statuses.data(), memory->lengths.data(), 2}),
                         deadline)
                .ok());
    Require(remote
                ->Submit(std::make_shared<transfer::PushOp>(
                             std::vector<kvt::Key>(1), frame_.data(), std::vector<uint64_t>{frame_.size()},
                             transfer::Results{memory->push_statuses.data(), nullptr, 1}),
                         deadline)
                .ok());
    Require(remote
                ->Submit(std::make_shared<transfer::PullStreamOp>(
                             kvt::Key(), memory->streamed.data(), memory->streamed.size(),
                             memory->part_offsets.data(), memory->part_lengths.data(), kParts),
                         deadline)
                .ok());
    kvt::fuzz::TurnLoop(core_->loop.get());
  }

  void RequireEnded(size_t expected) {
    std::vector<kvt_completion_t> completions(16);
    size_t ended = 0;
    while (const size_t count = core_->operations->Poll(absl::MakeSpan(completions))) {
      for (size_t i = 0; i < count; ++i) ended += completions[i].kind == KVT_COMPLETION_DONE;
    }
    Require(ended == expected);
  }

  const std::shared_ptr<kvt::Runtime> runtime_ = kvt::fuzz::MakeRuntime();
  const std::shared_ptr<transfer::Core> core_ = kvt::fuzz::MakeCore(runtime_);
  std::vector<uint8_t> frame_;
  net::Place place_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  if (size != 0) world.Run(data[0] % 2 == 0, kvt::Bytes(data + 1, size - 1));
  return 0;
}
