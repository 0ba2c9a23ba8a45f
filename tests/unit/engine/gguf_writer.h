// Writes small GGUF files by hand, so that tests have models that no package ships. Threads: the test's.
#ifndef KVARTET_TESTS_UNIT_ENGINE_GGUF_WRITER_H_
#define KVARTET_TESTS_UNIT_ENGINE_GGUF_WRITER_H_

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace kvt::engine {

class GgufWriter {
 public:
  GgufWriter& Text(const std::string& key, const std::string& value) {
    Key(key, 8);
    PutText(&head_, value);
    return *this;
  }
  GgufWriter& U32(const std::string& key, uint32_t value) {
    Key(key, 4);
    Put(&head_, value);
    return *this;
  }
  GgufWriter& F32(const std::string& key, float value) {
    Key(key, 6);
    Put(&head_, value);
    return *this;
  }
  GgufWriter& I32s(const std::string& key, const std::vector<int32_t>& values) {
    Key(key, 9);
    Put<uint32_t>(&head_, 5);
    Put<uint64_t>(&head_, values.size());
    for (const int32_t value : values) Put(&head_, value);
    return *this;
  }
  // An f32 tensor of small pseudo-random values.
  GgufWriter& Tensor(const std::string& name, const std::vector<uint64_t>& dims) {
    PutText(&infos_, name);
    Put<uint32_t>(&infos_, static_cast<uint32_t>(dims.size()));
    uint64_t count = 1;
    for (const uint64_t dim : dims) {
      Put(&infos_, dim);
      count *= dim;
    }
    Put<uint32_t>(&infos_, 0);
    Put<uint64_t>(&infos_, data_.size());
    for (uint64_t i = 0; i < count; ++i) {
      seed_ = seed_ * 1664525u + 1013904223u;
      Put(&data_, static_cast<float>(seed_ >> 8) / 16777216.0f - 0.5f);
    }
    Pad(&data_);
    ++tensors_;
    return *this;
  }
  std::string File() const {
    std::string file = "GGUF";
    Put<uint32_t>(&file, 3);
    Put(&file, tensors_);
    Put(&file, keys_);
    file += head_ + infos_;
    if (tensors_ > 0) Pad(&file);
    return file + data_;
  }

 private:
  template <class T>
  static void Put(std::string* to, T value) {
    to->append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void PutText(std::string* to, const std::string& text) {
    Put<uint64_t>(to, text.size());
    *to += text;
  }
  static void Pad(std::string* to) { to->resize((to->size() + 31) / 32 * 32, '\0'); }
  void Key(const std::string& key, uint32_t type) {
    PutText(&head_, key);
    Put(&head_, type);
    ++keys_;
  }

  std::string head_, infos_, data_;
  uint64_t keys_ = 0;
  uint64_t tensors_ = 0;
  uint32_t seed_ = 1;
};

// A file that is removed with its owner.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("kvt-engine-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".gguf");
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace kvt::engine

#endif  // KVARTET_TESTS_UNIT_ENGINE_GGUF_WRITER_H_
