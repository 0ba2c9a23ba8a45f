#include "kvartet/quality_state.h"

#include <filesystem>
#include <sstream>

#include "kvartet/files.h"
#include "kvartet/library.h"

namespace kvt::cli {
namespace {

std::string Head(const std::string& identity) {
  return Json({{"kvartet_quality", 1}, {"run", identity}}).dump() + "\n";
}

std::string Line(size_t document, const std::vector<DocumentSample>& samples) {
  Json all = Json::array();
  for (const DocumentSample& sample : samples) all.push_back(SampleToJson(sample));
  return Json({{"document", document}, {"samples", all}}).dump() + "\n";
}

}  // namespace

QualityState::QualityState(const std::string& path, const std::string& identity) : path_(path) {
  CheckWritable(path);
  std::string kept = Head(identity);
  std::error_code code;
  if (std::filesystem::exists(path, code)) {
    const std::vector<uint8_t> bytes = ReadFile(path);
    std::istringstream lines(std::string(bytes.begin(), bytes.end()));
    std::string line;
    std::getline(lines, line);
    if (line + "\n" != kept) {
      throw Failure(path +
                    ": is not the state of this run: texts, methods, settings, profile and build must be the "
                    "same; give another path, or delete it");
    }
    while (std::getline(lines, line)) {
      const Json json = Json::parse(line, nullptr, false);
      if (json.is_discarded()) break;
      try {
        std::vector<DocumentSample> samples;
        for (const Json& sample : json.at("samples")) samples.push_back(SampleFromJson(sample));
        done_[json.at("document").get<size_t>()] = std::move(samples);
      } catch (const Json::exception& error) {
        throw Failure(path + ": is damaged (" + error.what() + "); delete it");
      }
      kept += line + "\n";
    }
  }
  WriteFile(path, kept);
  file_.open(path, std::ios::app | std::ios::binary);
  if (!file_) throw Failure(path + ": cannot be written");
}

const std::vector<DocumentSample>* QualityState::Find(size_t document) const {
  const auto found = done_.find(document);
  return found == done_.end() ? nullptr : &found->second;
}

void QualityState::Add(size_t document, const std::vector<DocumentSample>& samples) {
  file_ << Line(document, samples);
  if (!file_.flush()) throw Failure(path_ + ": cannot be written");
  done_[document] = samples;
}

void QualityState::Finish() {
  file_.close();
  std::error_code code;
  std::filesystem::remove(path_, code);
}

}  // namespace kvt::cli
