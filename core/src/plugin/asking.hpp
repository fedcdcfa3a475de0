// SPDX-License-Identifier: Apache-2.0
// Calls of a plugin's functions that answer questions: whatever they throw becomes an Error that names plugin and
// function, and a probe process records the call (plugin_call.hpp).
//
// Threads: the caller's. Ownership: none. Blocking: as the function. Errors: Error alone.
#pragma once

#include <exception>
#include <string>

#include "plugin/plugin_call.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::plugin {

/// `function`: a literal.
template <class Call>
auto asking(const std::string& plugin, const char* function, Call call, CallKind kind = CallKind::call) {
  const CallScope scope(plugin, text("{}()", function), {}, kind);
  const ActivityScope activity(ActivityScope::Kind::plugin_call, function, plugin.c_str());
  const std::string place = text("{}, {}()", plugin, function);
  try {
    return call();
  } catch (const Error& error) {
    throw Error(error.message(), error.where().empty() ? place : place + ", " + error.where(), error.hint());
  } catch (const std::exception& error) {
    throw Error(text("an exception: {}", error.what()), place);
  } catch (...) {
    throw Error("an exception that is not derived from std::exception", place);
  }
}

} // namespace triax::plugin
