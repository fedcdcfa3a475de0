// SPDX-License-Identifier: Apache-2.0
#include "page/html_text.hpp"

#include "base/xml_text.hpp"

namespace triax::page {

std::string html_escaped(std::string_view text) {
  std::string out = xml_escaped(printable(text));
  // An attribute of HTML may be in single quotes.
  for (std::size_t at = 0; (at = out.find('\'', at)) != std::string::npos;) out.replace(at, 1, "&#39;");
  return out;
}

} // namespace triax::page
