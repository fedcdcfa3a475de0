// SPDX-License-Identifier: Apache-2.0
#include "generate/text_output.hpp"

#include <csignal>

#include "os/terminal.hpp"
#include "triax/text.hpp"

namespace triax::app {

TextOutput::TextOutput(std::ostream& out, bool is_terminal, std::size_t samples, os::StopSignals& signals)
    : out_(out), is_terminal_(is_terminal), signals_(signals), waiting_(samples), has_ended_(samples) {}

void TextOutput::begin() {
  waiting_.assign(waiting_.size(), {});
  has_ended_.assign(has_ended_.size(), false);
  written_ = 0;
  write_number();
}

void TextOutput::add(std::size_t sample, std::string_view part) {
  if (sample != written_) {
    waiting_[sample] += part;
    return;
  }
  write(is_terminal_ ? os::printable_lines(part) : std::string(part));
}

void TextOutput::end(std::size_t sample) {
  has_ended_[sample] = true;
  while (written_ < has_ended_.size() && has_ended_[written_]) {
    if (last_ != '\n') write("\n");
    if (++written_ == has_ended_.size()) return;
    write_number();
    add(written_, waiting_[written_]);
  }
}

void TextOutput::write_number() {
  if (waiting_.size() > 1) write(triax::text("{}=== sample {} ===\n", written_ == 0 ? "" : "\n", written_ + 1));
  last_ = '\n';
}

void TextOutput::write(std::string_view text) {
  if (text.empty()) return;
  last_ = text.back();
  out_ << text << std::flush;
  if (!out_ && signals_.caught() == 0) signals_.ask(SIGPIPE);
}

} // namespace triax::app
