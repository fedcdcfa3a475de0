// SPDX-License-Identifier: Apache-2.0
#include "triax/log.hpp"

namespace triax {

Log::~Log() = default;

namespace {

class NullLog final : public Log {
 public:
  bool enabled(LogLevel) const noexcept override { return false; }
  void write(LogLevel, std::string_view) noexcept override {}
};

} // namespace

Log& null_log() {
  static NullLog log; // stateless
  return log;
}

} // namespace triax
