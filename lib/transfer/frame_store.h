// Where the frames come from that a node serves, and where those go that peers push. lib/node adapts the
// cache to them.
#ifndef KVARTET_LIB_TRANSFER_FRAME_STORE_H_
#define KVARTET_LIB_TRANSFER_FRAME_STORE_H_

#include "codec/frame.h"
#include "net/message.h"

namespace kvt::transfer {

using net::Pinned;

// Thread-safe.
class FrameStore {
 public:
  virtual ~FrameStore() = default;
  // A whole frame, which stays as it is while the pin lives. KVT_ERR_NOT_FOUND and others.
  virtual StatusOr<Pinned> Get(const Key& key) = 0;
  // Takes a frame that has been verified under `key`.
  virtual Status Put(const Key& key, Pinned frame) = 0;
  // Whether the calls may wait for a disk; they then run on the runtime's workers.
  virtual bool Blocks() const = 0;
  // Whether it has ended for good, so that another may be served in its place.
  virtual bool Gone() const { return false; }
};

}  // namespace kvt::transfer

#endif  // KVARTET_LIB_TRANSFER_FRAME_STORE_H_
