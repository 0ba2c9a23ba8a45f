// Calibration, profiles and the codec through the C ABI.
#include <thread>

#include "kvartet/experimental.h"
#include "kvartet/runtime.h"
#include "unit/transform/transform_fixture.h"

namespace kvt::test {
namespace {

std::string LastText() {
  char text[KVT_ERROR_TEXT_MAX];
  size_t needed = 0;
  EXPECT_EQ(kvt_last_error(text, sizeof text, &needed), KVT_OK);
  return std::string(text, needed);
}

class ApiTest : public testing::Test {
 protected:
  void SetUp() override {
    handle_ = NewHandle(std::shared_ptr<const Model>(model_));
    ASSERT_EQ(kvt_calibration_create(handle_, nullptr, &calibration_), KVT_OK);
  }
  void TearDown() override {
    kvt_calibration_destroy(calibration_);
    kvt_model_destroy(handle_);
  }
  void Add(uint32_t documents) {
    for (uint32_t document = 0; document < documents; ++document) {
      Memory memory(model_, Layout::kDense, KVT_ELEMENT_F16, 150);
      FillCorrelated(*model_, &memory, document);
      ASSERT_EQ(kvt_calibration_add(calibration_, memory.description(), 0, 150, nullptr), KVT_OK)
          << LastText();
    }
  }
  template <typename Call>
  static std::vector<uint8_t> Out(const Call& call) {
    size_t needed = 0;
    EXPECT_EQ(call(nullptr, size_t{0}, &needed), KVT_OK) << LastText();
    std::vector<uint8_t> bytes(needed);
    EXPECT_EQ(call(bytes.data(), needed - 1, &needed), KVT_ERR_BUFFER_TOO_SMALL);
    EXPECT_EQ(call(bytes.data(), bytes.size(), &needed), KVT_OK) << LastText();
    return bytes;
  }
  std::vector<uint8_t> Finish() const {
    return Out([&](uint8_t* buf, size_t cap, size_t* needed) {
      return kvt_calibration_finish(calibration_, buf, cap, needed);
    });
  }
  kvt_codec_t NewCodec(const std::vector<uint8_t>& profile, uint32_t ratio) const {
    kvt_codec_options_t options;
    kvt_codec_options_init(&options, sizeof options);
    EXPECT_EQ(options.ratio, 0u);
    options.name = "transform";
    options.name_len = 9;
    options.profile = profile.data();
    options.profile_len = profile.size();
    options.ratio = ratio;
    kvt_codec_t codec = 0;
    EXPECT_EQ(kvt_codec_create(handle_, &options, &codec), KVT_OK) << LastText();
    return codec;
  }

  const std::shared_ptr<const Model> model_ = MakeModel(KvShape());
  kvt_model_t handle_ = 0;
  kvt_calibration_t calibration_ = 0;
};

TEST_F(ApiTest, CalibrateSaveRestoreFinish) {
  Add(2);
  const auto saved = Out([&](uint8_t* buf, size_t cap, size_t* needed) {
    return kvt_calibration_save(calibration_, buf, cap, needed);
  });
  kvt_calibration_t restored = 0;
  ASSERT_EQ(kvt_calibration_restore(handle_, saved.data(), saved.size(), &restored), KVT_OK) << LastText();
  kvt_calibration_info_t info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(kvt_calibration_progress(restored, &info), KVT_OK);
  EXPECT_EQ(info.documents, 2u);
  EXPECT_EQ(info.tokens, 2u * 146);
  const auto profile = Finish();
  const auto again = Out([&](uint8_t* buf, size_t cap, size_t* needed) {
    return kvt_calibration_finish(restored, buf, cap, needed);
  });
  EXPECT_EQ(profile, again);
  kvt_calibration_destroy(restored);
  EXPECT_EQ(kvt_calibration_progress(restored, &info), KVT_ERR_STALE_HANDLE);
  kvt_calibration_destroy(restored);
  kvt_calibration_destroy(0);
}

TEST_F(ApiTest, ProfilesTravelAsFrames) {
  Add(1);
  const auto profile = Finish();
  uint8_t fingerprint[KVT_FINGERPRINT_BYTES], key[KVT_KEY_BYTES];
  ASSERT_EQ(kvt_profile_fingerprint(profile.data(), profile.size(), fingerprint), KVT_OK);
  ASSERT_EQ(kvt_profile_key(fingerprint, key), KVT_OK);
  const auto frame = Out([&](uint8_t* buf, size_t cap, size_t* needed) {
    return kvt_profile_wrap(profile.data(), profile.size(), nullptr, buf, cap, needed);
  });
  ASSERT_EQ(kvt_frame_verify(frame.data(), frame.size()), KVT_OK);
  EXPECT_EQ(InspectFrame(Bytes(frame))->key, Key::From(key));
  const auto back = Out([&](uint8_t* buf, size_t cap, size_t* needed) {
    return kvt_profile_unwrap(frame.data(), frame.size(), buf, cap, needed);
  });
  EXPECT_EQ(back, profile);
  const auto json = Out([&](uint8_t* buf, size_t cap, size_t* needed) {
    return kvt_profile_describe(profile.data(), profile.size(), reinterpret_cast<char*>(buf), cap, needed);
  });
  EXPECT_NE(AsText(Bytes(json)).find(Hex(Bytes(fingerprint, sizeof fingerprint))), std::string::npos);
}

TEST_F(ApiTest, ThreadsShareACodec) {
  Add(2);
  const kvt_codec_t codec = NewCodec(Finish(), 8);
  Memory memory(model_, Layout::kDense, KVT_ELEMENT_F16, 280);
  FillCorrelated(*model_, &memory, 50);
  kvt_frame_spec_t spec;
  kvt_frame_spec_init(&spec, sizeof spec);
  spec.token_count = 280;
  const auto encode = [&] {
    std::vector<uint8_t> frame(1 << 20);
    size_t needed = 0;
    EXPECT_EQ(
        kvt_codec_encode(codec, memory.description(), &spec, frame.data(), frame.size(), &needed, nullptr),
        KVT_OK);
    frame.resize(needed);
    return frame;
  };
  const auto first = encode();
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(encode(), first);
        Memory back(model_, Layout::kDense, KVT_ELEMENT_F16, 280);
        EXPECT_EQ(kvt_codec_decode(codec, first.data(), first.size(), &spec, back.description(), nullptr),
                  KVT_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  kvt_codec_destroy(codec);
}

TEST_F(ApiTest, RefusesBadArguments) {
  kvt_calibration_options_t options;
  kvt_calibration_options_init(&options, sizeof options);
  EXPECT_EQ(options.ratio_min, 4u);
  kvt_calibration_t other = 0;
  options.reserved = 1;
  EXPECT_EQ(kvt_calibration_create(handle_, &options, &other), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_NE(LastText().find("reserved is 1"), std::string::npos);
  EXPECT_EQ(kvt_calibration_create(calibration_, nullptr, &other), KVT_ERR_WRONG_HANDLE);
  EXPECT_EQ(kvt_calibration_create(handle_, nullptr, nullptr), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(other, 0u);
  size_t needed = 77;
  EXPECT_EQ(kvt_calibration_finish(calibration_, nullptr, 0, &needed), KVT_ERR_OUT_OF_RANGE);
  EXPECT_EQ(needed, 77u);
  uint8_t bytes[100] = {};
  EXPECT_EQ(kvt_calibration_restore(handle_, bytes, sizeof bytes, &other), KVT_ERR_CORRUPT);
  EXPECT_EQ(kvt_profile_fingerprint(bytes, sizeof bytes, bytes), KVT_ERR_CORRUPT);
  EXPECT_EQ(kvt_profile_fingerprint(nullptr, 0, bytes), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(kvt_profile_unwrap(bytes, sizeof bytes, nullptr, 0, &needed), KVT_ERR_CORRUPT);
  EXPECT_EQ(kvt_profile_key(nullptr, bytes), KVT_ERR_INVALID_ARGUMENT);
  kvt_codec_options_t codec_options;
  kvt_codec_options_init(&codec_options, sizeof codec_options);
  codec_options.name = "transform";
  codec_options.name_len = 9;
  kvt_codec_t codec = 0;
  EXPECT_EQ(kvt_codec_create(handle_, &codec_options, &codec), KVT_ERR_INVALID_ARGUMENT);
  codec_options.profile_len = 5;
  EXPECT_EQ(kvt_codec_create(handle_, &codec_options, &codec), KVT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(codec, 0u);
  // What a program built against the first draft passes.
  codec_options.name = "raw";
  codec_options.name_len = 3;
  codec_options.struct_size = offsetof(kvt_codec_options_t, profile);
  EXPECT_EQ(kvt_codec_create(handle_, &codec_options, &codec), KVT_OK);
  kvt_codec_destroy(codec);
}

}  // namespace
}  // namespace kvt::test
