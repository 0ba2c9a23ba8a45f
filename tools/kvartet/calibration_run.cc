// How a calibration runs: documents enter, layers are weighed, bases are made.
#include <algorithm>
#include <optional>
#include <thread>

#include "engine/gguf_weights.h"
#include "kvartet/calibration.h"
#include "kvartet/calibration_state.h"
#include "kvartet/clock.h"
#include "kvartet/layer_probes.h"
#include "kvartet/metric.h"
#include "kvartet/prefill_ahead.h"
#include "kvartet/quality_importance.h"

namespace kvt::cli {
namespace {

constexpr int32_t kTrialTokens = 128;

int32_t Jobs(const CalibrationSettings& settings) {
  if (settings.jobs > 0) return settings.jobs;
  return std::clamp<int32_t>(static_cast<int32_t>(std::thread::hardware_concurrency()), 1, 8);
}

Calibration NewCalibration(const Model& model, const CalibrationSettings& settings) {
  kvt_calibration_options_t options;
  kvt_calibration_options_init(&options, sizeof options);
  options.ratio_min = settings.ratio_min;
  options.group_layers = settings.group_layers;
  Calibration calibration;
  Check(kvt_calibration_create(model.get(), &options, calibration.out()), "kvt_calibration_create");
  return calibration;
}

kvt_calibration_info_t Progress(const Calibration& calibration) {
  kvt_calibration_info_t info = {};
  info.struct_size = sizeof info;
  Check(kvt_calibration_progress(calibration.get(), &info), "kvt_calibration_progress");
  return info;
}

// Whether the engine shows what a metric is made of: an error says why not.
engine::Status TryCapture(const engine::Engine& engine, const CalibrationPlan& plan) {
  engine::SessionOptions options;
  options.context_tokens = options.batch = kTrialTokens;
  options.capture_every = kImportanceEvery;
  const std::unique_ptr<engine::Session> session = Take(engine.NewSession(options), "session");
  const std::span<const int32_t> tokens = plan.documents.front().tokens;
  const engine::Result<engine::Choice> choice =
      session->Prefill(tokens.first(std::min<size_t>(tokens.size(), kTrialTokens)));
  if (!choice.ok()) return choice.error();
  return engine::Done{};
}

// A metric that has the projections of the model's file.
engine::Result<Metric> NewMetric(const engine::Engine& engine) {
  const engine::Geometry& geometry = engine.geometry();
  if (geometry.heads % geometry.kv.kv_heads != 0) {
    return engine::Error{engine::ErrorKind::kUnsupported,
                         std::to_string(geometry.heads) + " query heads over " +
                             std::to_string(geometry.kv.kv_heads) + " KV heads"};
  }
  const engine::Result<engine::GgufWeights> weights = engine::GgufWeights::Open(engine.path());
  if (!weights.ok()) return weights.error();
  Metric metric(geometry);
  for (int32_t layer = 0; layer < geometry.kv.layers; ++layer) {
    const engine::Result<std::vector<float>> matrix =
        weights->Matrix("blk." + std::to_string(layer) + ".attn_output.weight", geometry.width,
                        int64_t{geometry.heads} * geometry.kv.head_dim_v);
    if (!matrix.ok()) return matrix.error();
    metric.SetProjection(static_cast<size_t>(layer), *matrix);
  }
  return metric;
}

// Documents of different kinds: the first ones of texts, or all where texts are few, evenly spread.
std::vector<size_t> ChooseProbes(const std::vector<TextDocument>& documents) {
  const auto firsts = static_cast<size_t>(std::count_if(
      documents.begin(), documents.end(), [](const TextDocument& document) { return document.index == 0; }));
  const size_t from = firsts < kProbeDocuments ? documents.size() : firsts;
  const size_t count = std::min(from, kProbeDocuments);
  std::vector<size_t> chosen;
  chosen.reserve(count);
  for (size_t i = 0; i < count; ++i) chosen.push_back(i * from / count);
  return chosen;
}

class Run {
 public:
  Run(const engine::Engine& engine, const Model& model, const CalibrationPlan& plan,
      const std::string& state_path, const ShowProgress& show)
      : engine_(engine),
        model_(model),
        plan_(plan),
        show_(show),
        state_(model, plan.identity, state_path),
        probes_(ChooseProbes(plan.documents)) {}

  CalibrationResult Go() {
    const Clock clock;
    Begin();
    EnterDocuments();
    result_.documents_seconds = clock.Milliseconds() / 1000;
    if (metric_) matrices_ = metric_->Matrices();
    SetMetric(calibration_, matrices_);
    if (plan_.settings.weights) SetWeights();
    result_.weights_seconds = clock.Milliseconds() / 1000 - result_.documents_seconds;
    show_("calibrating, last step: bases");
    CopyBytes([&](uint8_t* buf, size_t cap,
                  size_t* needed) { return kvt_calibration_finish(calibration_.get(), buf, cap, needed); },
              "kvt_calibration_finish", &result_.profile);
    const kvt_calibration_info_t info = Progress(calibration_);
    result_.documents = info.documents;
    result_.tokens = info.tokens;
    result_.nonfinite = info.nonfinite;
    result_.seconds = clock.Milliseconds() / 1000;
    result_.bases_seconds = result_.seconds - result_.documents_seconds - result_.weights_seconds;
    return std::move(result_);
  }

 private:
  void Begin() {
    std::optional<RestoredCalibration> restored = state_.Restore();
    if (plan_.settings.metric) MakeMetric();
    if (!restored) {
      calibration_ = NewCalibration(model_, plan_.settings);
      return;
    }
    calibration_ = std::move(restored->calibration);
    sums_ = std::move(restored->sums);
    if (metric_ && !metric_->Restore(sums_.metric))
      throw Failure("the state of this calibration has " + std::to_string(sums_.metric.size()) +
                    " bytes of metric, which do not fit the model; delete it");
    result_.resumed = Progress(calibration_).documents;
  }

  void MakeMetric() {
    const engine::Status shown = TryCapture(engine_, plan_);
    engine::Result<Metric> made = shown.ok() ? NewMetric(engine_) : shown.error();
    if (made.ok()) {
      metric_.emplace(std::move(*made));
    } else if (made.error().kind == engine::ErrorKind::kUnsupported) {
      result_.no_metric = made.error().message;
    } else {
      throw Failure("metric: " + made.error().message);
    }
  }

  bool IsProbe(size_t document) const {
    return plan_.settings.weights && sums_.weights.empty() &&
           std::binary_search(probes_.begin(), probes_.end(), document);
  }

  void EnterDocuments() {
    ComputeProbesAgain();
    const std::vector<TextDocument>& documents = plan_.documents;
    const std::string of = " of " + std::to_string(documents.size()) + " documents";
    if (result_.resumed >= documents.size()) return;
    PrefillAhead ahead(engine_, documents, result_.resumed, Jobs(plan_.settings),
                       metric_ ? kImportanceEvery : 0);
    for (size_t i = result_.resumed; i < documents.size(); ++i) {
      const PrefilledDocument document = ahead.Next([&](size_t tokens) {
        show_("calibrating, " + std::to_string(i) + of + ": " + std::to_string(tokens) + " tokens computed");
      });
      Enter(document);
      if (metric_) {
        metric_->Add(document.captured, document.blob, i);
        sums_.metric = metric_->Save();
      }
      if (IsProbe(i)) kept_.push_back(CutProbe(documents[i].tokens, document.blob));
      state_.Save(calibration_, sums_);
      show_("calibrating, " + std::to_string(i + 1) + of + ": " + documents[i].name + " has entered");
    }
  }

  // Its tokens are as important as they will be when a cache of such a text is encoded.
  void Enter(const PrefilledDocument& document) {
    std::vector<int8_t> importance;
    if (document.captured.rows() > 0) importance = ImportanceOf(model_, document.blob, document.captured);
    const BlobView view(document.blob);
    Check(
        kvt_calibration_add(calibration_.get(), view.get(), 0, static_cast<uint64_t>(document.blob.tokens()),
                            importance.empty() ? nullptr : importance.data()),
        "kvt_calibration_add");
  }

  // The probes' documents among those that have entered in an earlier run.
  void ComputeProbesAgain() {
    std::vector<TextDocument> documents;
    for (size_t i = 0; i < result_.resumed; ++i) {
      if (IsProbe(i)) documents.push_back(plan_.documents[i]);
    }
    if (documents.empty()) return;
    PrefillAhead ahead(engine_, documents, 0, Jobs(plan_.settings));
    for (const TextDocument& document : documents) {
      const PrefilledDocument prefilled = ahead.Next([&](size_t tokens) {
        show_("calibrating, documents for layer weights once more: " + std::to_string(tokens) +
              " tokens computed");
      });
      kept_.push_back(CutProbe(document.tokens, prefilled.blob));
    }
  }

  void SetWeights() {
    const auto layers = static_cast<size_t>(engine_.geometry().kv.layers);
    if (sums_.weights.empty()) {
      show_("calibrating, layer weights: a codec of pairs of layers");
      const auto weights = MeasureLayerWeights(engine_, model_, matrices_, kept_, Jobs(plan_.settings),
                                               [&](size_t done, size_t all) {
                                                 show_("calibrating, layer weights: " + std::to_string(done) +
                                                       " of " + std::to_string(all) + " probes");
                                               });
      for (const std::vector<float>& stream : weights)
        sums_.weights.insert(sums_.weights.end(), stream.begin(), stream.end());
      kept_.clear();
      state_.Save(calibration_, sums_);
    }
    if (sums_.weights.size() != 2 * layers)
      throw Failure("the state of this calibration has weights of " + std::to_string(sums_.weights.size()) +
                    " layers, which do not fit the model; delete it");
    for (size_t i = 0; i < sums_.weights.size(); ++i) {
      Check(kvt_calibration_set_weight(calibration_.get(), static_cast<uint32_t>(i / layers),
                                       static_cast<uint32_t>(i % layers), sums_.weights[i]),
            "kvt_calibration_set_weight");
      result_.weights[i / layers].push_back(sums_.weights[i]);
    }
  }

  const engine::Engine& engine_;
  const Model& model_;
  const CalibrationPlan& plan_;
  const ShowProgress& show_;
  CalibrationState state_;
  const std::vector<size_t> probes_;  // indices of documents, ascending
  Calibration calibration_;
  CalibrationSums sums_;
  std::optional<Metric> metric_;
  HeadMatrices matrices_;
  std::vector<ProbeDocument> kept_;
  CalibrationResult result_;
};

}  // namespace

CalibrationResult Calibrate(const engine::Engine& engine, const Model& model, const CalibrationPlan& plan,
                            const std::string& state_path, const ShowProgress& show) {
  return Run(engine, model, plan, state_path, show).Go();
}

}  // namespace kvt::cli
