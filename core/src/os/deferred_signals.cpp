// SPDX-License-Identifier: Apache-2.0
#include "os/deferred_signals.hpp"

#include <pthread.h>

#include <ctime>

#include "os/stop_signals.hpp"

namespace triax::os {

DeferredSignals::DeferredSignals() {
  sigemptyset(&signals_);
  for (const int signal : kStopSignals)
    if (!is_ignored(signal)) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
}

DeferredSignals::~DeferredSignals() {
  while (caught() != 0) {
  }
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

int DeferredSignals::caught() {
  constexpr timespec kNow{};
  const int signal = sigtimedwait(&signals_, nullptr, &kNow);
  return signal < 0 ? 0 : signal;
}

} // namespace triax::os
