// SPDX-License-Identifier: Apache-2.0
#include "os/exit_guard.hpp"

#include <atomic>
#include <cstdlib>
#include <utility>

namespace triax::os {

namespace {

std::atomic<ExitGuard*> guard{nullptr}; // exit() is of the whole process

} // namespace

ExitGuard::ExitGuard(std::function<void()> on_exit) : on_exit_(std::move(on_exit)) {
  [[maybe_unused]] static const int registered = std::atexit([] { call(); });
  guard = this;
}

ExitGuard::~ExitGuard() {
  guard = nullptr;
}

void ExitGuard::call() noexcept {
  if (ExitGuard* const one = guard.exchange(nullptr)) one->on_exit_();
}

} // namespace triax::os
