// SPDX-License-Identifier: Apache-2.0
// Trace events as JSON text, for chrome://tracing and ui.perfetto.dev.
//
// Errors: none; invalid UTF-8 is replaced.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace triax::draw {

inline constexpr double kTraceMicroseconds = 1000; // per millisecond

class TraceEvents {
 public:
  using Json = nlohmann::ordered_json;

  void add(const Json& event) {
    out_ += (out_.empty() ? "\n" : ",\n") + event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  /// Metadata of a process or track: "process_name", "thread_name", "thread_sort_index"...
  void add_name(const char* what, int process, std::size_t track, const Json& args) {
    add({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", args}});
  }
  /// An event at `time_ms`; the caller must add "dur" to an "X".
  static Json at(const char* phase, const std::string& name, int process, std::size_t track, double time_ms) {
    return {{"ph", phase}, {"name", name}, {"pid", process}, {"tid", track}, {"ts", time_ms * kTraceMicroseconds}};
  }
  std::string file() const { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + out_ + "\n]}\n"; }

 private:
  std::string out_;
};

} // namespace triax::draw
