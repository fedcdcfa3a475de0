// SPDX-License-Identifier: Apache-2.0
#include "ucx_log.hpp"

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>
extern "C" {
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>
}

namespace triax::comm_ucx {

namespace {

thread_local std::vector<std::string>* captured = nullptr;
std::atomic<bool> silent = false; // in the whole process, as UCX's log is

ucs_log_func_rc_t keep(const char*, unsigned, const char*, ucs_log_level_t level, const ucs_log_component_config_t*,
                       const char* format, va_list arguments) {
  if (captured && level <= UCS_LOG_LEVEL_WARN) {
    std::array<char, 1024> line{};
    va_list copy;
    va_copy(copy, arguments);
    std::vsnprintf(line.data(), line.size(), format, copy);
    va_end(copy);
    captured->emplace_back(line.data());
  }
  return silent && level > UCS_LOG_LEVEL_FATAL ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
}

} // namespace

UcxLogCapture::UcxLogCapture(bool quiet) {
  static std::once_flag once; // the plugin is never unloaded, so the handler stays
  std::call_once(once, [quiet] {
    ucs_log_push_handler(keep);
    if (!quiet) return;
    silent = true;
    ucs_global_opts_set_value("LOG_LEVEL", "warn"); // what is above does not reach the handler
  });
  captured = &messages_;
}

UcxLogCapture::~UcxLogCapture() {
  captured = nullptr;
}

} // namespace triax::comm_ucx
