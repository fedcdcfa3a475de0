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

Terminal stderr_terminal() {
  winsize size{};
  const bool sized = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  return decide_terminal(::isatty(STDERR_FILENO) == 1, std::getenv("TERM"), std::getenv("NO_COLOR"),
                         sized ? size.ws_col : 0);
}

} // namespace triax::report
