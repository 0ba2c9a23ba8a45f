#include "kvartet/quality_jobs.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

namespace kvt::cli {
namespace {

class Jobs {
 public:
  Jobs(const QualityPlan& plan, std::span<const QualityDocument> documents, QualityState* state,
       ProgressLine* progress)
      : plan_(plan), documents_(documents), state_(state), progress_(progress) {}

  void Run() {
    const size_t count = std::min(static_cast<size_t>(plan_.settings.jobs), documents_.size());
    std::vector<std::thread> threads;
    for (size_t i = 1; i < count; ++i) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void Work() {
    QualityRun run(plan_);
    try {
      for (size_t i = Next(); i < documents_.size(); i = Next()) {
        const auto show = [&](const std::string& text) {
          std::string line = documents_[i].name;
          return Show(line.append(", ").append(text));
        };
        const std::vector<DocumentSample> samples = run.Measure(documents_[i], show);
        const std::lock_guard lock(mutex_);
        state_->Add(i, samples);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  // The next document that is not done; their number when none is left or a job has failed.
  size_t Next() {
    const std::lock_guard lock(mutex_);
    while (next_ < documents_.size() && state_->Find(next_) != nullptr) ++next_;
    return failure_ ? documents_.size() : next_++;
  }

  bool Show(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (failure_) return false;
    progress_->Show(std::to_string(state_->size()) + " of " + std::to_string(documents_.size()) +
                    " documents are done: " + text);
    return true;
  }

  const QualityPlan& plan_;
  const std::span<const QualityDocument> documents_;
  std::mutex mutex_;  // of all that follows
  QualityState* const state_;
  ProgressLine* const progress_;
  size_t next_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

std::vector<DocumentSample> MeasureDocuments(const QualityPlan& plan,
                                             std::span<const QualityDocument> documents, QualityState* state,
                                             ProgressLine* progress) {
  Jobs(plan, documents, state, progress).Run();
  std::vector<DocumentSample> samples;
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::vector<DocumentSample>& own = *state->Find(i);
    samples.insert(samples.end(), own.begin(), own.end());
  }
  return samples;
}

}  // namespace kvt::cli
