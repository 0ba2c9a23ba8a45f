// A hostile peer that connected to this node: any messages after a good handshake, or in its place when the
// first byte is odd. The connection ends when the peer's does, and gives all memory back.
#include <map>

#include "fuzz/peer.h"
#include "transfer/served.h"

namespace {

using kvt::fuzz::Require;
namespace transfer = kvt::transfer;

// Holds one frame, whatever is put.
class OneFrame : public transfer::FrameStore {
 public:
  explicit OneFrame(std::vector<uint8_t> frame) : frame_(std::move(frame)) {}
  kvt::StatusOr<kvt::net::Pinned> Get(const kvt::Key& key) override {
    if (!key.IsNull()) return kvt::Error(KVT_ERR_NOT_FOUND, "no such frame");
    return kvt::net::Pinned{kvt::Bytes(frame_), nullptr};
  }
  kvt::Status Put(const kvt::Key& key, kvt::net::Pinned frame) override {
    const auto summary = kvt::VerifyFrame(frame.bytes, nullptr);
    Require(summary.ok() && summary->key == key);
    return kvt::OkStatus();
  }
  bool Blocks() const override { return false; }

 private:
  const std::vector<uint8_t> frame_;
};

class World {
 public:
  World() {
    const auto model = kvt::fuzz::SmallModel();
    kvt::fuzz::Rows rows(model, 4);
    rows.Fill();
    std::vector<uint8_t> frame = kvt::fuzz::Encode(**kvt::fuzz::MakeCodec(model, "raw"), rows.view());
    stream_ = *streams_->Open(kvt::Key());
    Require(stream_->Append(kvt::Bytes(frame)).ok());
    Require(shelf_->Serve(std::make_shared<OneFrame>(std::move(frame))).ok());
    used_ = runtime_->memory_used();
  }

  void Run(bool greet, kvt::Bytes script) {
    int ends[2];
    Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    kvt::net::Fd peer(ends[0]);
    {
      const auto served =
          std::make_shared<transfer::Served>(core_, shelf_, streams_, kvt::net::Fd(ends[1]), nullptr);
      Require(served->Start(kvt::OkStatus()).ok());
      if (greet) kvt::fuzz::SendHello(*core_, peer.get());
      kvt::fuzz::SendScript(core_->loop.get(), peer.get(), script);
      peer.Reset();
      kvt::fuzz::TurnUntil(core_->loop.get(), [&] { return !served->open(); });
    }
    Require(core_->counters.connections == 0 && runtime_->memory_used() == used_);
  }

 private:
  const std::shared_ptr<kvt::Runtime> runtime_ = kvt::fuzz::MakeRuntime();
  const std::shared_ptr<transfer::Core> core_ = kvt::fuzz::MakeCore(runtime_);
  const std::shared_ptr<transfer::Shelf> shelf_ = std::make_shared<transfer::Shelf>();
  const std::shared_ptr<transfer::Streams> streams_ = std::make_shared<transfer::Streams>(core_, [] {});
  std::shared_ptr<transfer::Stream> stream_;
  uint64_t used_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  if (size != 0) world.Run(data[0] % 2 == 0, kvt::Bytes(data + 1, size - 1));
  return 0;
}
