// SPDX-License-Identifier: Apache-2.0
#include "plugin/fault_handler.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

#include "os/fault_guard.hpp"

namespace triax::plugin {

namespace {

constexpr std::size_t kStackBytes = std::size_t{1} << 16;

CallRecord* faults_of = nullptr;             // global: a signal handler has no user argument
alignas(16) char handler_stack[kStackBytes]; // after a stack overflow, the handler needs another stack

/// Plugins are named NAME.so. Other shared libraries have a version after the suffix, and programs have no suffix.
bool is_plugin(const char* file) {
  return file && std::string_view(file).ends_with(".so");
}

/// backtrace() and dladdr() are not async-signal-safe. Acceptable here: the process ends anyway, and a second fault
/// ends it too.
void handle(int signal) {
  std::array<void*, 64> frames;
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 0; i < depth; ++i) {
    Dl_info info;
    if (dladdr(frames[static_cast<std::size_t>(i)], &info) == 0 || !is_plugin(info.dli_fname)) continue;
    const std::size_t size = std::min(std::strlen(info.dli_fname), sizeof faults_of->fault_file - 1);
    std::memcpy(faults_of->fault_file, info.dli_fname, size);
    faults_of->fault_file[size] = '\0';
    break;
  }
  raise(signal); // SA_RESETHAND: the default action, once this returns
}

} // namespace

void install_fault_handlers(CallRecord& record) noexcept {
  faults_of = &record;
  void* first = nullptr;
  backtrace(&first, 1); // loads the unwinder now: a handler must not
  const stack_t stack{handler_stack, 0, kStackBytes};
  sigaltstack(&stack, nullptr);
  for (const int signal : os::kFaults) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = handle;
    action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
}

} // namespace triax::plugin
