#include "kvartet/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kvartet/files.h"
#include "kvartet/prefill_ahead.h"
#include "kvartet/profile.h"
#include "kvartet/rung_costs.h"
#include "unit/engine/model_fixture.h"
#include "unit/tools/scratch_folder.h"

namespace kvt::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Interruption {};

class Calibrating : public ::testing::Test {
 protected:
  Calibrating() : model_(MakeModel(engine::TestEngine().geometry())) {
    for (const char* name : {"one", "two", "three"}) {
      std::string text;
      for (int i = 0; i < 60; ++i) text += std::string(name) + " " + std::to_string(i * 37 % 101) + ", then ";
      settings_.texts.push_back(folder_.Write(name, text));
    }
    settings_.tokens = 384;
    settings_.document_tokens = 128;
    settings_.group_layers = 1;
    settings_.weights = false;
  }

  CalibrationPlan Plan() const { return PlanCalibration(engine::TestEngine(), model_, settings_); }
  std::vector<uint8_t> Profile(const std::string& state) const {
    return Calibrate(engine::TestEngine(), model_, Plan(), state, [](const std::string&) {}).profile;
  }
  // Stops when the document has entered and its state is kept.
  void Interrupt(const std::string& state, int after) const {
    const std::string stage = "calibrating, " + std::to_string(after) + " of";
    const auto show = [&](const std::string& text) {
      if (text.rfind(stage, 0) == 0) throw Interruption();
    };
    EXPECT_THROW(Calibrate(engine::TestEngine(), model_, Plan(), state, show), Interruption);
  }

  const ScratchFolder folder_;
  const Model model_;
  CalibrationSettings settings_;
};

TEST_F(Calibrating, GoesOnWhereItStoppedToTheSameBytes) {
  const std::vector<uint8_t> whole = Profile(folder_.At("state.a"));
  const std::string state = folder_.At("state.b");
  Interrupt(state, 1);
  Interrupt(state, 2);
  const CalibrationResult result =
      Calibrate(engine::TestEngine(), model_, Plan(), state, [](const std::string&) {});
  EXPECT_EQ(result.resumed, 2u);
  EXPECT_EQ(result.documents, 3u);
  EXPECT_EQ(result.tokens, 384u - 3 * 4);
  EXPECT_TRUE(result.profile == whole);
}

// With layer weights: their documents are computed again, and weights that are kept are not measured again.
TEST_F(Calibrating, WeighsLayersToTheSameBytesAfterAnInterruption) {
  settings_.weights = true;
  settings_.tokens = 128;
  const std::string state = folder_.At("state.b");
  Interrupt(state, 1);
  std::string stages;
  const auto show = [&](const std::string& text) { stages += text + "\n"; };
  const CalibrationResult measured = Calibrate(engine::TestEngine(), model_, Plan(), state, show);
  EXPECT_THAT(stages, AllOf(HasSubstr("once more"), HasSubstr("of 33 probes")));
  for (const std::vector<float>& stream : measured.weights) {
    ASSERT_EQ(stream.size(), 30u);
    for (const float weight : stream) EXPECT_GT(weight, 0);
    EXPECT_EQ(stream[4], stream[5]);
    EXPECT_NE(stream[4], stream[6]);
  }
  stages.clear();
  const CalibrationResult again = Calibrate(engine::TestEngine(), model_, Plan(), state, show);
  EXPECT_THAT(stages, Not(HasSubstr("probes")));
  EXPECT_TRUE(again.profile == measured.profile);
  EXPECT_TRUE(Profile(folder_.At("state.a")) == measured.profile);
}

TEST_F(Calibrating, MetricAndWeightsAreOtherProfiles) {
  const CalibrationPlan with = Plan();
  settings_.metric = false;
  EXPECT_NE(with.FileName(model_), Plan().FileName(model_));
  const std::vector<uint8_t> plain = Profile(folder_.At("state.a"));
  settings_.metric = true;
  EXPECT_FALSE(Profile(folder_.At("state.b")) == plain);
}

TEST_F(Calibrating, DoesNotDependOnTheNumberOfJobs) {
  settings_.jobs = 1;
  const std::vector<uint8_t> one = Profile(folder_.At("state.a"));
  settings_.jobs = 3;
  EXPECT_TRUE(Profile(folder_.At("state.b")) == one);
}

TEST_F(Calibrating, MeasuresWhatCodecsCost) {
  const CalibrationPlan plan = Plan();
  const std::vector<uint8_t> profile = Profile(folder_.At("state"));
  PrefillAhead ahead(engine::TestEngine(), plan.documents, 0, 1);
  const PrefilledDocument document = ahead.Next([](size_t) {});
  const ProbeDocument probe = CutProbe(plan.documents[0].tokens, document.blob);
  // Without transform at 16.
  const auto rungs = MeasureRungs(engine::TestEngine(), model_, probe, profile, 17);
  ASSERT_EQ(rungs.size(), 5u);
  for (const kvt_profile_rung_t& rung : rungs) {
    EXPECT_GT(rung.cost.encode_rate, 1e5) << rung.codec;
    EXPECT_GT(rung.cost.decode_rate, 1e5) << rung.codec;
    EXPECT_GT(rung.cost.ratio, 1) << rung.codec;
    EXPECT_EQ(rung.cost.quality_class == 0, std::string(rung.codec) == "lossless") << rung.codec;
  }
  EXPECT_LT(rungs[1].cost.quality_class, rungs[4].cost.quality_class);
  EXPECT_GT(rungs[4].cost.ratio, rungs[3].cost.ratio);

  const std::string processor = ProcessorName();
  EXPECT_FALSE(processor.empty());
  const std::vector<uint8_t> with = ProfileWithRungs(profile, rungs, processor);
  EXPECT_EQ(ProfileFingerprint(with), ProfileFingerprint(profile));
  std::vector<kvt_profile_rung_t> read(rungs.size());
  size_t needed = 0;
  ASSERT_EQ(kvt_profile_rungs(with.data(), with.size(), read.data(), read.size(), &needed), KVT_OK);
  EXPECT_EQ(needed, rungs.size());
  EXPECT_EQ(std::memcmp(read.data(), rungs.data(), needed * sizeof read[0]), 0);
}

TEST_F(Calibrating, LeavesAStateOfSomethingElseAlone) {
  const std::string state = folder_.At("state");
  Interrupt(state, 1);
  const std::vector<uint8_t> kept = ReadFile(state);
  settings_.ratio_min = 16;
  EXPECT_THAT(Thrown([&] { Profile(state); }), AllOf(HasSubstr(state), HasSubstr("other texts or settings")));

  engine::Geometry geometry = engine::TestEngine().geometry();
  geometry.weights_sha256[0] ^= 1;
  const Model other = MakeModel(geometry);
  EXPECT_THAT(Thrown([&] {
                Calibrate(engine::TestEngine(), other,
                          PlanCalibration(engine::TestEngine(), other, settings_), state,
                          [](const std::string&) {});
              }),
              AllOf(HasSubstr(state), HasSubstr("another model's calibration")));
  EXPECT_EQ(ReadFile(state), kept);
}

TEST_F(Calibrating, RefusesADamagedState) {
  const std::string state = folder_.At("state");
  Interrupt(state, 1);
  std::vector<uint8_t> bytes = ReadFile(state);
  WriteFile(state, {ByteSpan(bytes).first(bytes.size() - 1)});
  EXPECT_THAT(Thrown([&] { Profile(state); }), HasSubstr("is damaged"));
  bytes[100] ^= 1;  // of the metric's sums
  WriteFile(state, {bytes});
  EXPECT_THAT(Thrown([&] { Profile(state); }), HasSubstr("is damaged"));
  WriteFile(state, "something else");
  EXPECT_THAT(Thrown([&] { Profile(state); }), HasSubstr("is not the state of a calibration"));
}

TEST_F(Calibrating, TakesTheFirstOfEachTextBeforeTheSecondOfAny) {
  settings_.tokens = 600;
  const CalibrationPlan plan = Plan();
  ASSERT_GE(plan.documents.size(), 4u);
  EXPECT_EQ(plan.documents[0].name, "one");
  EXPECT_EQ(plan.documents[1].name, "two");
  EXPECT_EQ(plan.documents[2].name, "three");
  EXPECT_EQ(plan.documents[3].name, "one#2");
}

TEST_F(Calibrating, SaysHowMuchTextIsMissing) {
  settings_.tokens = 100'000;
  EXPECT_THAT(Thrown([&] { Plan(); }), AllOf(HasSubstr("the texts are too short"), HasSubstr("100000")));
}

TEST_F(Calibrating, NamesProfilesByModelAndSettings) {
  const std::string name = Plan().FileName(model_);
  EXPECT_EQ(name, Plan().FileName(model_));
  settings_.group_layers = 2;
  EXPECT_NE(name, Plan().FileName(model_));
}

}  // namespace
}  // namespace kvt::cli
