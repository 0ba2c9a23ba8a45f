// P of the demo: prefills prompts on request and streams their KV, part by part, while the prefill still
// runs.
#ifndef KVARTET_TOOLS_KVARTET_PREFILL_ROLE_H_
#define KVARTET_TOOLS_KVARTET_PREFILL_ROLE_H_

#include "kvartet/channel.h"

namespace kvt::cli {

// Serves commands on the channel until it closes. Returns the process's exit status.
int RunPrefill(Channel channel);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_PREFILL_ROLE_H_
