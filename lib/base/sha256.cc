#include "base/sha256.h"

#include <openssl/evp.h>

namespace kvt {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256()
    : context_(EVP_MD_CTX_new()),
      ok_(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1) {}

void Sha256::Update(Bytes bytes) {
  ok_ = ok_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
}

void Sha256::UpdateU32(uint32_t value) {
  uint8_t bytes[sizeof value];
  StoreLe(bytes, value);
  Update(bytes);
}

void Sha256::UpdateU64(uint64_t value) {
  uint8_t bytes[sizeof value];
  StoreLe(bytes, value);
  Update(bytes);
}

void Sha256::UpdateSized(Bytes bytes) {
  UpdateU32(static_cast<uint32_t>(bytes.size()));
  Update(bytes);
}

StatusOr<Sha256Digest> Sha256::Finish() {
  Sha256Digest digest;
  ok_ = ok_ && EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1;
  if (!ok_) return Error(KVT_ERR_INTERNAL, "SHA-256 of the crypto library failed");
  ok_ = EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  return digest;
}

}  // namespace kvt
