// Decoding of hostile frames of the right model: the first byte chooses a codec, the others overwrite a good
// frame (two bytes of place, one of value), whose checksums are then made right. Rows lie between guards.
#include "fuzz/small.h"
#include "unit/codec/reseal.h"

namespace {

constexpr uint64_t kTokens = 20;

class World {
 public:
  World() {
    kvt::fuzz::Rows rows(model_, kTokens);
    rows.Fill();
    const std::string profile = *kvt::fuzz::MakeCalibration(model_)->Finish();
    for (const kvt::fuzz::FuzzedCodec& codec : kvt::fuzz::kCodecs) {
      codecs_.push_back(kvt::fuzz::MakeCodec(model_, codec, profile));
      frames_.push_back(kvt::fuzz::Encode(*codecs_.back(), rows.view()));
    }
  }

  void Decode(const uint8_t* data, size_t size) {
    const size_t chosen = data[0] % codecs_.size();
    std::vector<uint8_t> frame = frames_[chosen];
    for (size_t i = 1; i + 3 <= size; i += 3)
      frame[(data[i] | data[i + 1] << 8) % frame.size()] = data[i + 2];
    kvt::test::Reseal(frame);
    if (const auto header = kvt::ParseFrame(kvt::Bytes(frame)); header.ok()) {
      kvt::FrameHeader right = *header;
      for (kvt::Segment& segment : right.segments) {
        const kvt::Bytes stored = header->Stored(kvt::Bytes(frame), segment);
        segment.checksum = kvt::kernels::Hash(stored.data(), stored.size());
      }
      frame = kvt::test::WithHeader(frame, right, header->payload_offset);
    }
    kvt::fuzz::Rows rows(model_, kTokens);
    const kvt::View view = rows.view();
    (void)codecs_[chosen]->Decode(kvt::Bytes(frame), kvt::fuzz::SpecOf(view), view);
    rows.RequireGuards();
  }

 private:
  const std::shared_ptr<const kvt::Model> model_ = kvt::fuzz::SmallModel();
  std::vector<std::shared_ptr<const kvt::Codec>> codecs_;
  std::vector<std::vector<uint8_t>> frames_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  if (size != 0) world.Decode(data, size);
  return 0;
}
