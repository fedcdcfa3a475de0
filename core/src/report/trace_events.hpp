// SPDX-License-Identifier: Apache-2.0
// The list of trace events that chrome://tracing and ui.perfetto.dev read, as text.
//
// Threads: one. Ownership: values. Blocking: never. Errors: none: bytes that are not UTF-8 are replaced.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace triax::report {

inline constexpr double kTraceMicroseconds = 1000; // of a millisecond

class TraceEvents {
 public:
  using Json = nlohmann::ordered_json;

  void add(const Json& event) {
    out_ += (out_.empty() ? "\n" : ",\n") + event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  /// What a process or one of its tracks is called, or where it stands: "process_name", "thread_name"...
  void add_name(const char* what, int process, std::size_t track, const Json& args) {
    add({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", args}});
  }
  /// An event at `time_ms`; "X" has yet to get its "dur".
  static Json at(const char* phase, const std::string& name, int process, std::size_t track, double time_ms) {
    return {{"ph", phase}, {"name", name}, {"pid", process}, {"tid", track}, {"ts", time_ms * kTraceMicroseconds}};
  }
  std::string file() const { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + out_ + "\n]}\n"; }

 private:
  std::string out_;
};

} // namespace triax::report
