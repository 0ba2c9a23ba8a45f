// What codec dense needs of a profile, to and from the profile's header.
//
// Stateless and thread-safe. Reading is safe on hostile bytes.
#ifndef KVARTET_LIB_CODEC_PROFILE_DENSE_H_
#define KVARTET_LIB_CODEC_PROFILE_DENSE_H_

#include "codec/profile.h"
#include "schema/generated/profile_generated.h"

namespace kvt {

// KVT_ERR_CORRUPT that names the field.
StatusOr<std::shared_ptr<const DenseFacts>> ReadDense(const schema::ProfileDense& read);

flatbuffers::Offset<schema::ProfileDense> WriteDense(const DenseFacts& facts,
                                                     flatbuffers::FlatBufferBuilder* builder);

}  // namespace kvt

#endif  // KVARTET_LIB_CODEC_PROFILE_DENSE_H_
