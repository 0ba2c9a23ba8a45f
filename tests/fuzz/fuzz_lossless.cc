// Decoding of chunks of the lossless codec from any bytes: the first four choose the shape. Planes are joined
// into rows that are just as long as they have to be.
#include <memory>
#include <vector>

#include "codec/lossless/chunk.h"
#include "cpu/planes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  static kvt::lossless::ChunkDecoder decoder;
  const size_t width = size_t{1} << data[0] % 3;
  const kvt::lossless::ChunkShape shape = {{width, width == 1 ? 0 : data[0] / 3 % 2},
                                           (data[1] | size_t{data[2]} << 8) % 1200 + 1,
                                           data[3] % 40 + 1u};
  if (!decoder.Open(shape, kvt::Bytes(data + 4, size - 4)).ok()) return 0;
  const size_t step = kvt::lossless::BlockTokens(shape.channels), row = shape.channels * width;
  for (size_t done = 0; done < shape.tokens; done += step) {
    const size_t count = std::min(step, shape.tokens - done);
    if (!decoder.Next(count).ok()) return 0;
    const std::unique_ptr<uint8_t[]> rows(new uint8_t[count * row]);
    std::vector<uint8_t*> to;
    for (size_t t = 0; t < count; ++t) to.push_back(rows.get() + t * row);
    kvt::kernels::JoinPlanes(shape.planes, decoder.planes(), count, shape.channels, to.data());
  }
  (void)decoder.Close();
  return 0;
}
