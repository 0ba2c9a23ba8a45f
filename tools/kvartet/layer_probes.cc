#include "kvartet/layer_probes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>

#include "kvartet/half.h"
#include "kvartet/key_frame.h"
#include "kvartet/stream_codec.h"

namespace kvt::cli {
namespace {

constexpr uint32_t kGroupLayers = 2;
constexpr uint32_t kRatio = 16;
constexpr uint32_t kSinks = 4, kWindow = 16;  // tokens that are kept raw, as when caches are moved
constexpr double kRidge = 1e-3;               // as the library adds it to a metric
constexpr double kLeastDivergence = 1e-9;
constexpr double kLeastPart = 0.1;  // of a divergence, that is the error's own whatever is taken off
constexpr size_t kFloors = 3;       // depths at which the least change is tried: first, middle and last pair
constexpr auto kShowEvery = std::chrono::milliseconds(200);

// What one probe gave, or several together.
struct Effect {
  double divergence = 0;  // of the continuation, mean
  double distortion = 0;  // of the context's tokens in the metric, mean
};

const engine::RowView RowsOf(const engine::KvBlob& blob, size_t stream, size_t layer) {
  return stream == 0 ? blob.K(static_cast<int32_t>(layer)) : blob.V(static_cast<int32_t>(layer));
}

void CopyRows(const engine::KvBlob& from, size_t stream, size_t layer, const engine::KvBlob& to) {
  const engine::RowView source = RowsOf(from, stream, layer), target = RowsOf(to, stream, layer);
  std::memcpy(target.base, source.base, static_cast<size_t>(source.tokens * source.token_stride));
}

// Flips the last bit of all numbers, which changes them by a thousandth at most.
void FlipLastBits(const engine::KvBlob& blob, size_t stream, size_t layer) {
  const engine::RowView rows = RowsOf(blob, stream, layer);
  const auto bytes = static_cast<size_t>(rows.tokens * rows.token_stride);
  for (size_t i = 0; i < bytes; i += sizeof(uint16_t)) rows.base[i] ^= 1;
}

// e^T (M + ridge) e.
double Cost(std::span<const float> matrix, std::span<const float> error) {
  const size_t n = error.size();
  double square = 0, cost = 0, trace = 0;
  for (const float value : error) square += double{value} * double{value};
  if (matrix.empty()) return square;
  for (size_t i = 0; i < n; ++i) {
    float product = 0;
    for (size_t j = 0; j < n; ++j) product += matrix[i * n + j] * error[j];
    cost += double{error[i]} * double{product};
    trace += double{matrix[i * n + i]};
  }
  return cost + kRidge * trace / static_cast<double>(n) * square;
}

// A codec of pairs of layers, of the documents that it will be tried on.
Codec PairCodec(const Model& model, size_t layers, const HeadMatrices& matrices,
                const std::vector<ProbeDocument>& documents) {
  kvt_calibration_options_t options;
  kvt_calibration_options_init(&options, sizeof options);
  options.group_layers = std::min<uint32_t>(kGroupLayers, static_cast<uint32_t>(layers));
  options.ratio_min = kRatio;
  Calibration calibration;
  Check(kvt_calibration_create(model.get(), &options, calibration.out()), "kvt_calibration_create");
  for (const ProbeDocument& document : documents) {
    const BlobView view(document.rows);
    Check(kvt_calibration_add(calibration.get(), view.get(), 0, document.context.size(), nullptr),
          "kvt_calibration_add");
  }
  SetMetric(calibration, matrices);
  std::vector<uint8_t> profile;
  CopyBytes([&](uint8_t* buf, size_t cap,
                size_t* needed) { return kvt_calibration_finish(calibration.get(), buf, cap, needed); },
            "kvt_calibration_finish", &profile);
  return MakeTransform(model, profile, kRatio);
}

// All probes of all documents. Threads: Measure from several, with a session each.
class Probes {
 public:
  Probes(const engine::Engine& engine, const Model& model, const HeadMatrices& matrices, const Codec& codec)
      : engine_(engine),
        model_(model),
        matrices_(matrices),
        codec_(codec),
        layers_(static_cast<size_t>(engine.geometry().kv.layers)),
        frame_(engine.geometry().rope, static_cast<size_t>(engine.geometry().kv.head_dim_k)) {}

  size_t pairs() const { return (layers_ + kGroupLayers - 1) / kGroupLayers; }
  // Of a document: K's pairs, then V's, then the least changes.
  size_t count() const { return 2 * pairs() + kFloors; }
  size_t FloorPair(size_t floor) const { return floor * (pairs() - 1) / (kFloors - 1); }
  size_t done() const { return done_; }
  void Stop() { stop_ = true; }

  std::vector<Effect> Measure(const ProbeDocument& document) {
    ForcedOutput output(engine_, document);
    const std::vector<float> full = output.Logits(document.rows);
    const engine::KvBlob coded = Code(document);
    const engine::KvBlob mixed = Take(document.rows.Slice(0, document.rows.tokens()), "rows");
    std::vector<Effect> effects;
    for (size_t probe = 0; probe < 2 * pairs() && !stop_; ++probe) {
      const size_t stream = probe / pairs(), begin = probe % pairs() * kGroupLayers;
      const size_t end = std::min(layers_, begin + kGroupLayers);
      Effect effect;
      for (size_t layer = begin; layer < end; ++layer) {
        CopyRows(coded, stream, layer, mixed);
        effect.distortion += Distortion(document.rows, coded, stream, layer);
      }
      effect.divergence = output.Divergence(full, output.Logits(mixed));
      for (size_t layer = begin; layer < end; ++layer) CopyRows(document.rows, stream, layer, mixed);
      effects.push_back(effect);
      ++done_;
    }
    for (size_t floor = 0; floor < kFloors && !stop_; ++floor) {
      const size_t layer = FloorPair(floor) * kGroupLayers;
      FlipLastBits(mixed, 1, layer);
      effects.push_back({output.Divergence(full, output.Logits(mixed)), 0});
      CopyRows(document.rows, 1, layer, mixed);
      ++done_;
    }
    return effects;
  }

 private:
  engine::KvBlob Code(const ProbeDocument& document) const {
    const StreamName name = NameStream(model_, document.context, "probe");
    kvt_codec_report_t report;
    PartEncoder encoder;
    const std::span<const uint8_t> frame =
        encoder.Encode(codec_, name, document.rows, kSinks, kWindow, &report);
    engine::KvBlob decoded =
        Take(engine::KvBlob::Create(document.rows.geometry(), 0, document.rows.tokens()), "rows");
    DecodePart(codec_, name, frame, &decoded, &report);
    return decoded;
  }

  double Distortion(const engine::KvBlob& rows, const engine::KvBlob& coded, size_t stream,
                    size_t layer) const {
    const engine::RowView from = RowsOf(rows, stream, layer), to = RowsOf(coded, stream, layer);
    std::vector<float> error(static_cast<size_t>(from.head_dim)), other(error.size());
    double sum = 0;
    for (int32_t token = 0; token < from.tokens; ++token) {
      const KeyFrame::Turn turn = stream == 0 ? frame_.At(token) : KeyFrame::Turn{};
      for (size_t head = 0; head < static_cast<size_t>(from.heads); ++head) {
        ReadHead(from, token, head, error);
        ReadHead(to, token, head, other);
        for (size_t i = 0; i < error.size(); ++i) error[i] -= other[i];
        if (stream == 0) frame_.TurnBack(turn, error.data());
        sum += Cost(matrices_.At(stream, layer, head), error);
      }
    }
    return sum / from.tokens;
  }

  const engine::Engine& engine_;
  const Model& model_;
  const HeadMatrices& matrices_;
  const Codec& codec_;
  const size_t layers_;
  const KeyFrame frame_;
  std::atomic<size_t> done_ = 0;
  std::atomic<bool> stop_ = false;
};

// Measures the documents on several threads; effects by document.
std::vector<std::vector<Effect>> MeasureAll(Probes* probes, const std::vector<ProbeDocument>& documents,
                                            int32_t jobs, const std::function<void(size_t, size_t)>& show) {
  std::vector<std::vector<Effect>> effects(documents.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < documents.size(); i = next++) effects[i] = probes->Measure(documents[i]);
  };
  std::vector<std::future<void>> threads;
  // A future of std::async waits for its thread when it goes; what throws here ends the others first.
  struct Stopper {
    Probes* probes;
    std::atomic<size_t>* next;
    size_t end;
    ~Stopper() {
      probes->Stop();
      *next = end;
    }
  };
  const Stopper stopper{probes, &next, documents.size()};
  threads.reserve(static_cast<size_t>(jobs));
  for (int32_t job = 0; job < jobs; ++job) threads.push_back(std::async(std::launch::async, work));
  for (std::future<void>& thread : threads) {
    while (thread.wait_for(kShowEvery) != std::future_status::ready)
      show(probes->done(), documents.size() * probes->count());
    thread.get();
  }
  return effects;
}

// What the least change causes at a pair's depth, between the depths that were tried.
double Floor(std::span<const Effect> tried, const Probes& probes, size_t pair) {
  for (size_t i = 1; i < tried.size(); ++i) {
    const size_t low = probes.FloorPair(i - 1), high = probes.FloorPair(i);
    if (pair > high) continue;
    const double part = high > low ? static_cast<double>(pair - low) / static_cast<double>(high - low) : 0.0;
    return tried[i - 1].divergence * (1 - part) + tried[i].divergence * part;
  }
  return tried.back().divergence;
}

}  // namespace

std::array<std::vector<float>, 2> MeasureLayerWeights(const engine::Engine& engine, const Model& model,
                                                      const HeadMatrices& matrices,
                                                      const std::vector<ProbeDocument>& documents,
                                                      int32_t jobs,
                                                      const std::function<void(size_t, size_t)>& show) {
  const auto layers = static_cast<size_t>(engine.geometry().kv.layers);
  const Codec codec = PairCodec(model, layers, matrices, documents);
  Probes probes(engine, model, matrices, codec);
  const std::vector<std::vector<Effect>> effects = MeasureAll(&probes, documents, jobs, show);
  std::vector<Effect> sums(probes.count());
  for (const std::vector<Effect>& document : effects) {
    for (size_t probe = 0; probe < sums.size(); ++probe) {
      sums[probe].divergence += document[probe].divergence;
      sums[probe].distortion += document[probe].distortion;
    }
  }
  std::array<std::vector<float>, 2> weights;
  for (size_t probe = 0; probe < 2 * probes.pairs(); ++probe) {
    const size_t stream = probe / probes.pairs(), pair = probe % probes.pairs();
    const double floor = Floor(std::span(sums).last(kFloors), probes, pair);
    const Effect& sum = sums[probe];
    const double own = std::max({sum.divergence - floor, kLeastPart * sum.divergence, kLeastDivergence});
    // A pair without any error has nothing to weigh.
    const double weight = sum.distortion > 0 ? own / sum.distortion : 1;
    weights[stream].resize(std::min(layers, (pair + 1) * kGroupLayers), static_cast<float>(weight));
  }
  return weights;
}

}  // namespace kvt::cli
