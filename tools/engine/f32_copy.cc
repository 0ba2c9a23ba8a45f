#include "engine/f32_copy.h"

#include <fcntl.h>
#include <llama.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "engine/gguf_facts.h"
#include "engine/llama_glue.h"

namespace kvt::engine {
namespace {

constexpr uint64_t kHeadroom = uint64_t{64} << 20;  // metadata, and what else the disk is needed for

// The file GOAL.new, which one process at a time has, and which goes unless it is renamed to GOAL.
class FreshFile {
 public:
  explicit FreshFile(const std::string& goal) : goal_(goal), path_(goal + ".new") {}
  ~FreshFile() {
    if (fd_ < 0) return;
    if (!kept_) unlink(path_.c_str());
    close(fd_);
  }
  FreshFile(const FreshFile&) = delete;
  FreshFile& operator=(const FreshFile&) = delete;

  const std::string& path() const { return path_; }

  Status Claim() {
    const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return Failed("cannot write");
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      close(fd);
      return Error{ErrorKind::kIo, "another process is writing '" + path_ + "'"};
    }
    fd_ = fd;
    return Done{};
  }

  Status Keep() {
    if (fsync(fd_) != 0 || rename(path_.c_str(), goal_.c_str()) != 0) return Failed("cannot write");
    kept_ = true;
    return Done{};
  }

 private:
  Error Failed(const char* what) const {
    return Error{ErrorKind::kIo, std::string(what) + " '" + path_ + "': " + std::strerror(errno)};
  }

  const std::string goal_;
  const std::string path_;
  int fd_ = -1;
  bool kept_ = false;
};

Status CheckRoom(const std::string& folder, uint64_t needed) {
  std::error_code code;
  const std::filesystem::space_info space = std::filesystem::space(folder, code);
  if (code) return Error{ErrorKind::kIo, "cannot write to '" + folder + "': " + code.message()};
  if (space.available >= needed) return Done{};
  return Error{ErrorKind::kNoSpace, "an f32 copy of the weights needs " + std::to_string(needed >> 20) +
                                        " MiB in '" + folder + "', which has " +
                                        std::to_string(space.available >> 20) + " MiB left"};
}

}  // namespace

Result<uint64_t> F32WeightBytes(const std::string& path) {
  const Result<GgufFacts> facts = ReadGgufFacts(path);
  if (!facts.ok()) return facts.error();
  return facts->elements * sizeof(float);
}

Status WriteF32Copy(const std::string& path, const std::string& copy) {
  const Result<uint64_t> bytes = F32WeightBytes(path);
  if (!bytes.ok()) return bytes.error();
  // The engine ends the process when it is asked to convert a model that it cannot load.
  const Result<std::unique_ptr<Engine>> loads = Engine::Open(path);
  if (!loads.ok()) return loads.error();
  const std::filesystem::path parent = std::filesystem::path(copy).parent_path();
  const Status room = CheckRoom(parent.empty() ? "." : parent.string(), *bytes + kHeadroom);
  if (!room.ok()) return room.error();
  return Guarded([&]() -> Status {
    StartBackend();
    FreshFile fresh(copy);
    const Status claimed = fresh.Claim();
    if (!claimed.ok()) return claimed.error();
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype = LLAMA_FTYPE_ALL_F32;
    params.allow_requantize = true;
    params.nthread = 1;
    ClearLastWords();
    if (llama_model_quantize(path.c_str(), fresh.path().c_str(), &params) != 0)
      return EngineError(ErrorKind::kIo,
                         "the engine cannot write an f32 copy of '" + path + "' to '" + fresh.path() + "'");
    return fresh.Keep();
  });
}

}  // namespace kvt::engine
