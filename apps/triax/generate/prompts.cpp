// SPDX-License-Identifier: Apache-2.0
#include "generate/prompts.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <iostream>

#include "os/text_input.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::app {

namespace {

constexpr const char* kStandardInput = "-";
constexpr const char* kHowToType = "each line that you type is a prompt; Ctrl-D ends the program";
constexpr const char* kMarker = "> "; // before a line that the user types
constexpr int kPoll_ms = 50;

std::string text_of_file(const std::string& file) {
  const bool is_input = file == kStandardInput;
  std::string out = os::read_text(
      is_input ? "/dev/stdin" : file,
      {.shown = is_input ? "standard input" : file, .format = "prompt", .silence = std::chrono::minutes(10)});
  if (out.ends_with('\n')) out.pop_back();
  if (out.ends_with('\r')) out.pop_back();
  return out;
}

} // namespace

std::optional<std::string> given_prompt(const GenerateArguments& arguments) {
  if (arguments.prompt) return arguments.prompt;
  if (!arguments.file.empty()) return text_of_file(arguments.file);
  if (!arguments.input.empty()) return text_of_file(arguments.input);
  if (isatty(STDIN_FILENO) == 1) return std::nullopt;
  throw Error("no prompt was given, and standard input is not a terminal to type one on", {},
              "add --prompt TEXT, --file FILE, or - for standard input");
}

std::optional<std::string> TypedLines::next() {
  if (!has_begun_) std::cerr << kHowToType << '\n';
  has_begun_ = true;
  std::cerr << kMarker << std::flush;
  while (true) {
    const std::size_t end = read_.find('\n');
    if (end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      if (!line.empty()) return line;
      std::cerr << kMarker << std::flush;
      continue;
    }
    if (is_at_end_ || !read_more()) break;
  }
  std::cerr << '\n';
  return std::nullopt;
}

/// Returns false if a signal came. Waiting for a user is not a stall.
bool TypedLines::read_more() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (signals_.caught() == 0) {
    if (RankActivity* const activity = RankActivity::current()) activity->make_progress();
    const int ready = poll(&input, 1, kPoll_ms);
    if (ready < 0 && errno != EINTR) throw Error("standard input cannot be read");
    if (ready <= 0) continue;
    std::array<char, 4096> piece;
    const ssize_t got = read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    is_at_end_ = got <= 0;
    if (got > 0) read_.append(piece.data(), static_cast<std::size_t>(got));
    return true;
  }
  return false;
}

} // namespace triax::app
