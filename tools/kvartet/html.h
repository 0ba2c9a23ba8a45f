// Text and numbers in the HTML pages of reports. Threads: pure functions.
#ifndef KVARTET_TOOLS_KVARTET_HTML_H_
#define KVARTET_TOOLS_KVARTET_HTML_H_

#include <string>

namespace kvt::cli {

std::string EscapeHtml(const std::string& text);

// With so many digits after the point.
std::string Number(double value, int digits);

}  // namespace kvt::cli

#endif  // KVARTET_TOOLS_KVARTET_HTML_H_
