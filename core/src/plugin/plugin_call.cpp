// SPDX-License-Identifier: Apache-2.0
#include "plugin/plugin_call.hpp"

#include <fcntl.h>

#include <algorithm>

namespace triax::plugin {

namespace {

// Thread-local, not an argument: the engine calls plugins in many places, and only a probe records the calls.
thread_local CallRecord* active = nullptr;

template <std::size_t N>
void copy(char (&to)[N], std::string_view from) noexcept {
  const std::size_t size = std::min(from.size(), N - 1);
  std::copy_n(from.data(), size, to);
  to[size] = '\0';
}

void publish(CallRecord& record) noexcept {
  record.deadline.store(record.current.deadline.time_since_epoch().count(), std::memory_order_release);
}

/// Notes the current call as the one that closed the descriptor of the answer, if it is the first after which it is
/// closed.
void note_closer(CallRecord& record) noexcept {
  if (record.closer.what[0] == '\0' && fcntl(record.answer, F_GETFD) < 0) record.closer = record.current;
}

} // namespace

void record_calls(CallRecord* record) noexcept {
  active = record;
}

CallScope::CallScope(std::string_view plugin, std::string_view what, const std::filesystem::path& file,
                     CallKind kind) noexcept {
  if (!active) return;
  note_closer(*active); // before a call within it
  before_ = active->current;
  copy(active->current.plugin, plugin);
  copy(active->current.file, file.native());
  copy(active->current.what, what);
  if (kind != CallKind::unlimited) {
    const auto limit = kind == CallKind::call ? active->limits.call : active->limits.slow_call;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    if (deadline < before_.deadline) { // a nested call does not extend the deadline
      active->current.kind = kind;
      active->current.deadline = deadline;
    }
  }
  publish(*active);
}

CallScope::~CallScope() {
  if (!active) return;
  note_closer(*active);
  active->current = before_;
  publish(*active);
}

} // namespace triax::plugin
