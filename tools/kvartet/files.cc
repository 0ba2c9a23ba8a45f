#include "kvartet/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "kvartet/library.h"

namespace kvt::cli {
namespace {

[[noreturn]] void Fail(const std::string& path, const char* what) {
  throw Failure(path + ": " + what + ": " + std::strerror(errno));
}

// The file PATH.new, which one process at a time has, and which goes unless it is renamed to PATH.
class FileBeside {
 public:
  explicit FileBeside(const std::string& path) : path_(path), name_(path + ".new") {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code code;
    if (!folder.empty()) std::filesystem::create_directories(folder, code);
    if (std::filesystem::is_directory(path, code)) throw Failure(path + ": cannot be written: is a folder");
    fd_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) Fail(path_, "cannot be written");
    struct stat mine = {}, there = {};
    // Another process may have renamed or deleted what was opened here.
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0 || fstat(fd_, &mine) != 0 || stat(name_.c_str(), &there) != 0 ||
        mine.st_ino != there.st_ino) {
      close(fd_);
      throw Failure(path_ + ": cannot be written: another process is writing it");
    }
    if (ftruncate(fd_, 0) != 0) {
      close(fd_);
      Fail(path_, "cannot be written");
    }
  }
  FileBeside(const FileBeside&) = delete;
  FileBeside& operator=(const FileBeside&) = delete;
  ~FileBeside() {
    if (!committed_) unlink(name_.c_str());
    close(fd_);
  }

  void Write(ByteSpan bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) Fail(path_, "cannot be written");
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }

  void Commit() {
    if (fsync(fd_) != 0 || rename(name_.c_str(), path_.c_str()) != 0) Fail(path_, "cannot be written");
    committed_ = true;
  }

 private:
  const std::string path_, name_;
  int fd_ = -1;
  bool committed_ = false;
};

int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::vector<uint8_t> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) Fail(path, "cannot be read");
  std::vector<uint8_t> bytes;
  size_t size = 0;
  for (;;) {
    if (size == bytes.size()) bytes.resize(size + (size_t{16} << 20));
    const ssize_t got = read(fd, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      close(fd);
      errno = error;
      Fail(path, "cannot be read");
    }
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  close(fd);
  bytes.resize(size);
  return bytes;
}

void WriteFile(const std::string& path, std::initializer_list<ByteSpan> pieces) {
  FileBeside file(path);
  for (const ByteSpan piece : pieces) file.Write(piece);
  file.Commit();
}

void WriteFile(const std::string& path, const std::string& text) {
  WriteFile(path, {ByteSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size())});
}

void CheckWritable(const std::string& path) { FileBeside file(path); }

std::string Hex(ByteSpan bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

void FromHex(const std::string& text, std::span<uint8_t> out) {
  bool good = text.size() == 2 * out.size();
  for (size_t i = 0; good && i < out.size(); ++i) {
    const int high = Digit(text[2 * i]), low = Digit(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    out[i] = static_cast<uint8_t>(high * 16 + low);
  }
  if (!good) throw Failure("\"" + text + "\" is not " + std::to_string(out.size()) + " bytes in hexadecimal");
}

}  // namespace kvt::cli
