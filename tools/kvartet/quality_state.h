// Results of finished documents, kept in a file so that an interrupted run goes on where it was.
//
// The first line names the run; each further line is a document with all its contexts. A line that an
// interruption tore is dropped. Threads: one at a time.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_STATE_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_STATE_H_

#include <cstddef>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "kvartet/quality_sample.h"

namespace kvt::cli {

class QualityState {
 public:
  // Reads what the file has, or begins it. Throws Failure when it cannot be read or written, or is not the
  // state of the run `identity`; it is then left as it is.
  QualityState(const std::string& path, const std::string& identity);

  // Null when the document is not there.
  const std::vector<DocumentSample>* Find(size_t document) const;

  // Documents that are there.
  size_t size() const { return done_.size(); }

  void Add(size_t document, const std::vector<DocumentSample>& samples);

  // Deletes the file; the run's report is then written.
  void Finish();

 private:
  const std::string path_;
  std::map<size_t, std::vector<DocumentSample>> done_;
  std::ofstream file_;
};

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_STATE_H_
