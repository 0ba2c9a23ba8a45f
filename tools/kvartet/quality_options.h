// The command line of `kvartet quality`.
#ifndef KVARTET_TOOLS_KVARTET_QUALITY_OPTIONS_H_
#define KVARTET_TOOLS_KVARTET_QUALITY_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "kvartet/quality.h"

namespace kvt::cli {

// Adds the subcommand, which writes to `settings` and takes defaults from there. Owner: `app`.
CLI::App* AddQuality(CLI::App* app, QualitySettings* settings);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_QUALITY_OPTIONS_H_
