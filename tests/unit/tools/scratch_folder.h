// A folder that goes with the test, and the message of what a call throws.
#ifndef KVARTET_TESTS_UNIT_TOOLS_SCRATCH_FOLDER_H_
#define KVARTET_TESTS_UNIT_TOOLS_SCRATCH_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kvartet/library.h"

namespace kvt::cli {

class ScratchFolder {
 public:
  ScratchFolder() : path_((std::filesystem::temp_directory_path() / "kvt-tools-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  std::string At(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(At(name), std::ios::binary) << bytes;
    return At(name);
  }
  // How many entries the folder has.
  size_t Size() const {
    size_t size = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++size;
    return size;
  }

 private:
  std::string path_;
};

// Empty when nothing is thrown.
template <class Call>
std::string Thrown(Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace kvt::cli

#endif  // KVARTET_TESTS_UNIT_TOOLS_SCRATCH_FOLDER_H_
