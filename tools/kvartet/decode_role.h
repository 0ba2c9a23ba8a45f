// D of the demo: gets a prompt's KV in one of five ways and generates. It sends the coordinator a mark
// whenever another part of TTFT begins.
#ifndef KVARTET_TOOLS_KVARTET_DECODE_ROLE_H_
#define KVARTET_TOOLS_KVARTET_DECODE_ROLE_H_

#include "kvartet/channel.h"

namespace kvt::cli {

// Serves commands on the channel until it closes. Returns the process's exit status.
int RunDecode(Channel channel);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_DECODE_ROLE_H_
