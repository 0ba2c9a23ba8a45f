#include "engine/sha256_file.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace kvt::engine {

Result<std::array<uint8_t, 32>> Sha256File(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return Error{ErrorKind::kIo, "cannot open '" + path + "': " + std::strerror(errno)};
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return Error{ErrorKind::kIo, "SHA-256 is not available"};
  }
  std::vector<uint8_t> block(1 << 20);
  size_t count = 0;
  while ((count = std::fread(block.data(), 1, block.size(), file.get())) > 0) {
    if (EVP_DigestUpdate(context.get(), block.data(), count) != 1)
      return Error{ErrorKind::kIo, "SHA-256 failed"};
  }
  if (std::ferror(file.get()))
    return Error{ErrorKind::kIo, "cannot read '" + path + "': " + std::strerror(errno)};
  std::array<uint8_t, 32> digest{};
  if (EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) != 1)
    return Error{ErrorKind::kIo, "SHA-256 failed"};
  return digest;
}

}  // namespace kvt::engine
