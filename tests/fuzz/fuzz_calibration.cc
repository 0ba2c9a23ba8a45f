// A saved calibration, as it is and with its checksum made right. One that is restored saves what restores
// the same, and takes another document. The byte in front says whether it is finished too, which is slow: the
// profile is good.
#include "codec/profile.h"
#include "cpu/hash_copy.h"
#include "fuzz/small.h"

namespace {

using kvt::fuzz::Require;

constexpr uint64_t kTokens = 8;

class World {
 public:
  World() { rows_.Fill(); }

  void Restore(kvt::Bytes saved, bool finish) {
    const auto calibrator = kvt::Calibrator::Restore(model_, saved);
    if (!calibrator.ok()) return;
    const std::string again = (*calibrator)->Save();
    const auto second = kvt::Calibrator::Restore(model_, kvt::AsBytes(again));
    Require(second.ok() && (*second)->Save() == again);
    // The saved layers may be fewer than the view's, the heads are its one.
    Require((*calibrator)->Add(rows_.view(), 0, kTokens).ok());
    if (!finish) return;
    const auto finished = (*calibrator)->Finish();
    if (!finished.ok()) return;
    const auto profile = kvt::Profile::Parse(kvt::AsBytes(*finished));
    Require(profile.ok() && (*profile)->CheckModel(*model_).ok());
  }

 private:
  const std::shared_ptr<const kvt::Model> model_ = kvt::fuzz::SmallModel();
  kvt::fuzz::Rows rows_{model_, kTokens};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  if (size == 0) return 0;
  const bool finish = data[0] == 'f';
  const kvt::Bytes saved(data + 1, size - 1);
  world.Restore(saved, finish);
  if (saved.size() < sizeof(uint64_t)) return 0;
  std::vector<uint8_t> sealed(saved.begin(), saved.end());
  const size_t end = sealed.size() - sizeof(uint64_t);
  kvt::StoreLe<uint64_t>(sealed.data() + end, kvt::kernels::Hash(sealed.data(), end));
  world.Restore(kvt::Bytes(sealed), finish);
  return 0;
}
