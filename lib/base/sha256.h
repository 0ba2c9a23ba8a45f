// Sha256: OpenSSL's SHA-256 over bytes that come in pieces. One object, one thread at a time.
#ifndef KVARTET_LIB_BASE_SHA256_H_
#define KVARTET_LIB_BASE_SHA256_H_

#include <array>
#include <memory>

#include "base/bytes.h"
#include "base/status.h"

struct evp_md_ctx_st;

namespace kvt {

using Sha256Digest = std::array<uint8_t, 32>;

// Update and Finish report the first failure of the crypto library at Finish.
class Sha256 {
 public:
  Sha256();
  void Update(Bytes bytes);
  void UpdateU32(uint32_t value);
  void UpdateU64(uint64_t value);
  // u32 length, then the bytes: pieces that follow each other cannot be confused.
  void UpdateSized(Bytes bytes);
  // The digest of all since the start or the last Finish; the object starts anew.
  StatusOr<Sha256Digest> Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
  bool ok_;
};

}  // namespace kvt

#endif  // KVARTET_LIB_BASE_SHA256_H_
