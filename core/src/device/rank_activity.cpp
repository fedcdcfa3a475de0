// SPDX-License-Identifier: Apache-2.0
#include "triax/rank_activity.hpp"

#include <exception>

#include "os/library_of.hpp"
#include "triax/text.hpp"

namespace triax {

namespace {

/// The core is loaded at the start of a program, never later, so the variable needs no call to be found.
[[gnu::tls_model("initial-exec")]] constinit thread_local RankActivity* bound = nullptr;

bool is_of_plugin(const RankActivity::Call& call) noexcept {
  return call.plugin || call.object;
}

std::string plugin_of(const RankActivity::Call& call) {
  return call.plugin ? call.plugin : library_of(*call.object);
}

std::string text_of(const RankActivity::Call& call) {
  return text("in {}() of plugin \"{}\"", call.what, plugin_of(call));
}

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

std::string RankActivity::to_text() const {
  const Call call = this->call();
  if (!call.what) return {};
  return is_of_plugin(call) ? text_of(call) : call.what;
}

Error RankActivity::with_failed_call(const Error& error) const {
  if (!is_of_plugin(failed_) || error.where().find(plugin_of(failed_)) != std::string::npos) return error;
  return Error(error.message(), error.where() + (error.where().empty() ? "" : ", ") + text_of(failed_), error.hint());
}

std::string RankActivity::failed_plugin() const {
  return is_of_plugin(failed_) ? plugin_of(failed_) : std::string();
}

void RankActivity::fail_in_wait() noexcept {
  failed_ = {Kind::wait, "", nullptr, nullptr};
}

void RankActivity::fail() noexcept {
  if (failed_.what) return; // in a call within it
  if (const Call left = call(); is_of_plugin(left)) failed_ = left;
}

void RankActivity::forget_failed_call() noexcept {
  if (std::uncaught_exceptions() == 0) failed_ = {}; // its exception has been handled
}

WaitScope::WaitScope(const char* what, Deadline deadline, const char* plugin) noexcept
    : scope_(RankActivity::Kind::wait, what, plugin), deadline_(deadline), exceptions_(std::uncaught_exceptions()) {}

WaitScope::~WaitScope() {
  RankActivity* const activity = RankActivity::current();
  if (!activity || std::uncaught_exceptions() <= exceptions_) return;
  scope_.fail();
  if (Clock::now() >= deadline_) activity->time_out();
}

} // namespace triax
