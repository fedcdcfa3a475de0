// SPDX-License-Identifier: Apache-2.0
#include "os/ending_signals.hpp"

#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "os/stop_signals.hpp"

namespace triax::os {

namespace {

std::atomic<const EndingSignals*> ending{nullptr}; // a signal handler is of the whole process

} // namespace

EndingSignals::EndingSignals(int descriptor, const std::function<std::string(int signal)>& text_of)
    : descriptor_(descriptor), process_(::getpid()) {
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    answers_[i].signal = kStopSignals[i];
    answers_[i].text = text_of(kStopSignals[i]);
  }
  ending = this;
  for (Answer& answer : answers_) {
    struct sigaction action {};
    action.sa_handler = handle;
    sigfillset(&action.sa_mask);
    if (::sigaction(answer.signal, nullptr, &answer.before) != 0 || answer.before.sa_handler == SIG_IGN) continue;
    answer.is_set = ::sigaction(answer.signal, &action, nullptr) == 0;
  }
}

EndingSignals::~EndingSignals() {
  for (const Answer& answer : answers_)
    if (answer.is_set) ::sigaction(answer.signal, &answer.before, nullptr);
  ending = nullptr;
}

/// Only async-signal-safe calls.
void EndingSignals::handle(int signal) {
  const EndingSignals* const one = ending;
  if (one && one->process_ == ::getpid()) {
    for (const Answer& answer : one->answers_) {
      if (answer.signal != signal) continue;
      for (std::size_t at = 0; at < answer.text.size();) {
        const ssize_t written = ::write(one->descriptor_, answer.text.data() + at, answer.text.size() - at);
        if (written <= 0) break; // the reader is gone
        at += static_cast<std::size_t>(written);
      }
    }
  }
  ::_exit(128 + signal);
}

} // namespace triax::os
