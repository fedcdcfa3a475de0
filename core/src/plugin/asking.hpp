// Calls of a plugin's functions that answer questions: whatever they throw becomes an Error that names plugin and
// function.
//
// Threads: the caller's. Ownership: none. Blocking: as the function. Errors: Error alone.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "triax/error.hpp"

namespace triax::plugin {

template <class Call>
auto asking(const std::string& plugin, std::string_view function, Call call) {
  const std::string place = text("{}, {}()", plugin, function);
  try {
    return call();
  } catch (const Error& error) {
    throw Error(error.message(), error.where().empty() ? place : place + ", " + error.where(), error.hint());
  } catch (const std::exception& error) {
    throw Error(text("an exception: {}", error.what()), place);
  } catch (...) {
    throw Error("an exception that is no std::exception", place);
  }
}

} // namespace triax::plugin
