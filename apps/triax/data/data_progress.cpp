// SPDX-License-Identifier: Apache-2.0
#include "data/data_progress.hpp"

#include <algorithm>
#include <iostream>

#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

constexpr std::chrono::milliseconds kFrame(100), kLine(10'000);

std::int64_t whole_percent(double part) {
  return static_cast<std::int64_t>(100 * std::min(1.0, part));
}

} // namespace

DataProgress::~DataProgress() {
  if (drawn_) std::cerr << os::kClearLine << std::flush;
}

bool DataProgress::due() {
  const auto now = Clock::now();
  if (now - last_ < (terminal_.terminal ? kFrame : kLine)) return false;
  last_ = now;
  return true;
}

void DataProgress::read(std::uint64_t done, std::uint64_t total) {
  if (total == 0 || !due()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const double rate = static_cast<double>(done) / seconds;
  const double left = static_cast<double>(total - std::min(done, total)) / std::max(1.0, rate);
  show(text("{}: {} of {} ({} %), {}/s, {} left", verb_, report::bytes_text(done), report::bytes_text(total),
            whole_percent(static_cast<double>(done) / static_cast<double>(total)),
            report::bytes_text(static_cast<std::uint64_t>(rate)), report::duration_text(left)));
}

void DataProgress::made(std::int64_t tokens, std::int64_t vocab) {
  if (!due()) return;
  show(text("{}: {} of {} tokens ({} %)", verb_, tokens, vocab,
            whole_percent(static_cast<double>(tokens) / static_cast<double>(vocab))));
}

void DataProgress::show(const std::string& line) {
  if (!terminal_.terminal) {
    std::cerr << line << std::endl;
    return;
  }
  drawn_ = true;
  const auto width = static_cast<std::size_t>(std::max(1, terminal_.columns - 1));
  std::cerr << os::kClearLine << line.substr(0, width) << std::flush;
}

} // namespace triax::app
