// The main job: a prefill process, a decode process, five ways to get a prompt's KV from one to the other,
// and what each costs.
#ifndef KVARTET_TOOLS_KVARTET_DEMO_H_
#define KVARTET_TOOLS_KVARTET_DEMO_H_

#include "kvartet/settings.h"

namespace kvt::cli {

// Runs the demo and prints its table. Returns 0; 1 when a row that must be identical is not; throws Failure
// when it could not run. `deps` is the folder of downloads, texts and profiles.
int RunDemo(const Settings& settings, const std::string& deps);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_DEMO_H_
