// Waiting for signals on a thread of its own: no handler, and so nothing global.
#include "train/stop_signals.hpp"

#include <pthread.h>

#include <cstdlib>
#include <system_error>

#include "triax/error.hpp"

namespace triax::train {

StopSignals::StopSignals(Log& log, From from) : log_(log), from_(from) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
    throw Error(text("the thread that waits for signals could not be started: {}", error.code().message()), {},
                "allow this process more threads (ulimit -u), or end other processes");
  }
}

StopSignals::~StopSignals() {
  thread_.request_stop();
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void StopSignals::watch(const std::stop_token& stop) {
  constexpr timespec kTenth{0, 100'000'000};
  while (!stop.stop_requested()) {
    const int signal = sigtimedwait(&signals_, nullptr, &kTenth);
    if (signal < 0) continue;
    const bool again = caught_.exchange(signal) != 0;
    if (from_ == From::launcher) continue;
    if (again || at_once_.load()) std::_Exit(128 + signal);
    log_.info("{}: stopping after this step; once more stops at once", signal == SIGINT ? "SIGINT" : "SIGTERM");
  }
}

} // namespace triax::train
