// The command line of `kvartet select`.
#ifndef KVARTET_TOOLS_KVARTET_SELECTION_OPTIONS_H_
#define KVARTET_TOOLS_KVARTET_SELECTION_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "kvartet/selection.h"

namespace kvt::cli {

// Adds the subcommand, which writes to `settings` and takes defaults from there. Owner: `app`.
CLI::App* AddSelection(CLI::App* app, SelectionSettings* settings);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_SELECTION_OPTIONS_H_
