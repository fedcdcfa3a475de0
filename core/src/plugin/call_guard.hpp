// SPDX-License-Identifier: Apache-2.0
// Guarded calls of plugin functions that answer queries. An exception becomes an Error with plugin and function, and a
// probe process records the call (plugin_call.hpp).
//
// Threads: the caller's. Blocking: as the function does. Errors: only Error.
#pragma once

#include <exception>
#include <string>

#include "plugin/plugin_call.hpp"
#include "triax/error.hpp"
#include "triax/rank_activity.hpp"

namespace triax::plugin {

/// `function`: a string literal.
template <class Call>
auto guarded_call(const std::string& plugin, const char* function, Call call, CallKind kind = CallKind::call) {
  const CallScope scope(plugin, text("{}()", function), {}, kind);
  const std::string location = text("{}, {}()", plugin, function);
  try {
    return call_plugin(function, plugin.c_str(), call);
  } catch (const Error& error) {
    throw Error(error.message(), error.where().empty() ? location : location + ", " + error.where(), error.hint());
  } catch (const std::exception& error) {
    throw Error(text("an exception: {}", error.what()), location);
  } catch (...) {
    throw Error("an unknown exception (not derived from std::exception)", location);
  }
}

} // namespace triax::plugin
