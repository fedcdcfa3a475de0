// SPDX-License-Identifier: Apache-2.0
#include "common/shell_command.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <system_error>

#include "common/printable_line.hpp"

namespace triax::app {

namespace fs = std::filesystem;

fs::path from_here(const fs::path& path) {
  std::error_code none;
  const fs::path here = fs::current_path(none); // the folder may have been removed
  const fs::path relative = none ? path : fs::proximate(path, here, none);
  return none || relative.native().size() > path.native().size() ? path : relative;
}

std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./=+,:@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  const bool raw = printable_line(text) != text || text.find('\t') != std::string::npos;
  std::string out = raw ? "$'" : "'";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (!raw) {
      out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    } else if (code < 0x20 || code >= 0x7F) {
      constexpr std::string_view kOctal = "01234567"; // three digits, so that a following digit is not part of the code
      out.append("\\").append({kOctal[code >> 6], kOctal[code >> 3 & 7], kOctal[code & 7]});
    } else {
      out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
  }
  return out + "'";
}

std::string program() {
  std::error_code none;
  const fs::path self = fs::read_symlink("/proc/self/exe", none);
  if (none) return "triax";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::equivalent(fs::path(folder) / self.filename(), self, none)) return self.filename().string();
  return shell_word(from_here(self).string());
}

} // namespace triax::app
