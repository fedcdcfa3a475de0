// SPDX-License-Identifier: Apache-2.0
#include "os/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/printable.hpp"

namespace triax::os {

std::string printable_lines(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

Terminal decide_terminal(bool is_terminal, const char* term, const char* no_color, int columns) {
  Terminal out;
  out.terminal = is_terminal && term && *term && std::string_view(term) != "dumb";
  out.colour = out.terminal && !(no_color && *no_color);
  if (columns > 0) out.columns = columns;
  return out;
}

namespace {

std::string fold_line(std::string_view line, std::size_t columns) {
  constexpr std::size_t kIndent = 2;
  const std::size_t own = std::min(line.find_first_not_of(' '), line.size());
  std::string out;
  std::size_t used = 0; // columns used in the last line
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = line.find_first_not_of(' ', at); // the word with preceding spaces
    end = std::min(line.find(' ', std::min(end, line.size())), line.size());
    const std::string_view word = line.substr(at, end - at);
    if (used > own && used + word.size() > columns) {
      const std::string_view bare = word.substr(std::min(word.find_first_not_of(' '), word.size()));
      out.append("\n").append(own + kIndent, ' ').append(bare);
      used = own + kIndent + bare.size();
    } else {
      out += word;
      used += word.size();
    }
    at = end;
  }
  return out;
}

} // namespace

std::string fold_words(const std::string& text, std::size_t columns) {
  if (columns == 0) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += fold_line(std::string_view(text).substr(at, end - at), columns);
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

namespace {

Terminal terminal_of(int file) {
  winsize size{};
  const bool sized = ::ioctl(file, TIOCGWINSZ, &size) == 0;
  return decide_terminal(::isatty(file) == 1, std::getenv("TERM"), std::getenv("NO_COLOR"), sized ? size.ws_col : 0);
}

} // namespace

Terminal stderr_terminal() {
  return terminal_of(STDERR_FILENO);
}

Terminal stdout_terminal() {
  return terminal_of(STDOUT_FILENO);
}

} // namespace triax::os
