// SPDX-License-Identifier: Apache-2.0
#include "triax/rank_activity.hpp"

#include <exception>

#include "os/library_of.hpp"
#include "triax/text.hpp"

namespace triax {

namespace {

constinit thread_local RankActivity* bound = nullptr;

} // namespace

RankActivity::Binding::Binding(RankActivity& activity) noexcept : before_(bound) {
  bound = &activity;
}

RankActivity::Binding::~Binding() {
  bound = before_;
}

RankActivity* RankActivity::current() noexcept {
  return bound;
}

RankActivity::Call RankActivity::call() const noexcept {
  return {kind(), what_.load(std::memory_order_relaxed), plugin_.load(std::memory_order_relaxed),
          object_.load(std::memory_order_relaxed)};
}

void RankActivity::set_call(const Call& call) noexcept {
  what_.store(call.what, std::memory_order_relaxed);
  plugin_.store(call.plugin, std::memory_order_relaxed);
  object_.store(call.object, std::memory_order_relaxed);
  set_kind(call.kind);
}

std::string RankActivity::to_text() const {
  const Call call = this->call();
  if (!call.what) return {};
  if (!call.plugin && !call.object) return call.what;
  return text("in {}() of plugin \"{}\"", call.what, call.plugin ? call.plugin : library_of(*call.object));
}

ActivityScope::ActivityScope(const RankActivity::Call& call) noexcept : activity_(RankActivity::current()) {
  if (!activity_) return;
  before_ = activity_->call();
  activity_->set_call(call);
}

ActivityScope::~ActivityScope() {
  if (activity_) activity_->set_call(before_);
}

WaitScope::WaitScope(const char* what, Deadline deadline, const char* plugin) noexcept
    : scope_(RankActivity::Kind::wait, what, plugin), deadline_(deadline), exceptions_(std::uncaught_exceptions()) {}

WaitScope::~WaitScope() {
  RankActivity* const activity = RankActivity::current();
  if (activity && std::uncaught_exceptions() > exceptions_ && Clock::now() >= deadline_) activity->time_out();
}

} // namespace triax
