// SPDX-License-Identifier: Apache-2.0
#include "control/abort_flag.hpp"

#include "triax/text.hpp"

namespace triax::control {

JobAbort::Listener::~Listener() = default;

JobAbort::Listening::Listening(JobAbort& flag, Listener& listener) : flag_(flag), listener_(listener) {
  const std::lock_guard lock(flag_.mutex_);
  flag_.listeners_.push_back(&listener_);
  if (flag_.raised_) listener_.abort(flag_.reason_);
}

JobAbort::Listening::~Listening() {
  const std::lock_guard lock(flag_.mutex_);
  std::erase(flag_.listeners_, &listener_);
}

bool JobAbort::raise(int rank, std::string_view why) noexcept {
  return raise_with(rank, [&] { return text("rank {} failed: {}", rank, why); });
}

bool JobAbort::relay(int rank, std::string_view reason) noexcept {
  return raise_with(rank, [&] { return std::string(reason); });
}

template <class Reason>
bool JobAbort::raise_with(int rank, Reason reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (raised_) return rank_ == rank;
  raised_ = true;
  rank_ = rank;
  try {
    reason_ = reason();
  } catch (...) { // out of memory: abort without the reason
    reason_.clear();
  }
  for (Listener* listener : listeners_) listener->abort(reason_);
  return true;
}

bool JobAbort::raised() const noexcept {
  const std::lock_guard lock(mutex_);
  return raised_;
}

int JobAbort::rank() const noexcept {
  const std::lock_guard lock(mutex_);
  return rank_;
}

std::string JobAbort::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

} // namespace triax::control
