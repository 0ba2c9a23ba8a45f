// Children of a test: forked while the test has a single thread, ended by _exit, heard through a pipe.
#ifndef KVARTET_TESTS_UNIT_CACHE_CHILD_H_
#define KVARTET_TESTS_UNIT_CACHE_CHILD_H_

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace kvt {

class Child {
 public:
  // `body` writes to the descriptor that it is given; what it returns is written last.
  explicit Child(const std::function<std::string(int)>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) {
      close(ends[0]);
      const std::string text = body(ends[1]);
      const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
      _exit(written ? 0 : 1);
    }
    close(ends[1]);
    out_ = ends[0];
  }
  ~Child() {
    Kill();
    close(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // False when the child has closed its end first.
  bool Read(void* data, size_t size) {
    auto* to = static_cast<char*>(data);
    while (size != 0) {
      const ssize_t got = read(out_, to, size);
      if (got <= 0) return false;
      to += got;
      size -= static_cast<size_t>(got);
    }
    return true;
  }
  std::string ReadAll() {
    std::string text;
    for (char byte; Read(&byte, 1);) text.push_back(byte);
    return text;
  }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  // Everything the child said, once it has ended by itself.
  std::string Join() {
    std::string text = ReadAll();
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
    return text;
  }

 private:
  pid_t pid_ = 0;
  int out_ = -1;
};

}  // namespace kvt

#endif  // KVARTET_TESTS_UNIT_CACHE_CHILD_H_
