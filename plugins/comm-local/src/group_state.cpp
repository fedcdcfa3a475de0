// SPDX-License-Identifier: Apache-2.0
#include "group_state.hpp"

#include <sched.h>

namespace triax::comm_local {

std::string to_text(const Signature& signature) {
  static constexpr std::string_view kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                                "broadcast"};
  std::string out = text("{} of {} {}", kNames[static_cast<std::size_t>(signature.kind)], signature.elements,
                         name_of(signature.dtype));
  if (signature.kind == Kind::broadcast) return out + text(" from member {}", signature.root);
  if (signature.kind == Kind::all_reduce || signature.kind == Kind::reduce_scatter) {
    out += signature.reduce == Reduce::sum ? " (sum)" : " (max)";
  }
  return out;
}

GroupState::GroupState(const Group& group)
    : id_(group.id),
      ranks_(group.ranks),
      members_(std::make_unique<Member[]>(group.ranks.size())),
      references_(group.size()) {}

Edge& GroupState::edge(int from, int to, int channel) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Edge>& edge = edges_[{from, to, channel}];
  if (!edge) edge = std::make_unique<Edge>();
  return *edge;
}

void GroupState::abort(std::string_view why) noexcept {
  const std::lock_guard lock(mutex_);
  if (aborted()) return;
  try {
    reason_ = why;
  } catch (...) { // out of memory: abort without a reason
    reason_.clear();
  }
  aborted_.store(true, std::memory_order_seq_cst);
}

void GroupState::leave_early(int member) noexcept {
  abort(text("rank {} left group {} before its calls were complete", rank(member), id_));
  while (!quiet()) sched_yield(); // a peer may be in the middle of a copy; it starts no new one
}

bool GroupState::quiet() const noexcept {
  for (int member = 0; member < size(); ++member) {
    if (members_[static_cast<std::size_t>(member)].busy.load(std::memory_order_seq_cst)) return false;
  }
  return true;
}

void GroupState::release(int count) noexcept {
  if (references_.fetch_sub(count, std::memory_order_acq_rel) == count) delete this;
}

} // namespace triax::comm_local
