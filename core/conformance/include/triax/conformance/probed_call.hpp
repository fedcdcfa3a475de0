// SPDX-License-Identifier: Apache-2.0
// Calls of a plugin that are made before its checks, because their answers decide which checks apply. A plugin may
// crash or hang in them, so a program can run each under a guard: in another process, with a deadline.
//
// Threads: one. Ownership: values. Blocking: as the plugin's call does. Errors: those of the call and of the guard.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace triax::conformance {

/// A call that decides which checks apply.
struct ProbedCall {
  std::string_view kind; // of the plugin whose function it is: "model"
  const char* function;  // "supports"
  const char* clause;    // that it must keep: "M1"; "": none
};

/// Runs a probed call. Empty: it is only called.
using CallGuard = std::function<void(const ProbedCall& of, const std::function<void()>& call)>;

/// The value of a call that is run under a guard.
template <class Call>
auto probe(const CallGuard& guard, const ProbedCall& of, const Call& call) {
  if (!guard) return call();
  std::optional<decltype(call())> out;
  guard(of, [&] { out.emplace(call()); });
  return std::move(*out);
}

} // namespace triax::conformance
