#include "report/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace triax::report {

Terminal decide_terminal(bool is_terminal, const char* term, const char* no_color, int columns) {
  Terminal out;
  out.terminal = is_terminal && term && *term && std::string_view(term) != "dumb";
  out.colour = out.terminal && !(no_color && *no_color);
  if (columns > 0) out.columns = columns;
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

} // namespace triax::report
