// SPDX-License-Identifier: Apache-2.0
#include "group_state.hpp"

#include <sched.h>

namespace triax::comm_local {

GroupState::GroupState(const Group& group)
    : id_(group.id), ranks_(group.ranks), members_(std::make_unique<Member[]>(group.ranks.size())) {}

std::shared_ptr<GroupState> GroupState::shared(const std::string& key, const Group& group) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<GroupState>> states;
  const std::lock_guard lock(mutex);
  std::erase_if(states, [](const auto& state) { return state.second.expired(); });
  std::weak_ptr<GroupState>& state = states[key];
  std::shared_ptr<GroupState> out = state.lock();
  if (!out) state = out = std::make_shared<GroupState>(group);
  return out;
}

Edge& GroupState::edge(int from, int to, int channel) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Edge>& edge = edges_[{from, to, channel}];
  if (!edge) edge = std::make_unique<Edge>();
  return *edge;
}

void GroupState::leave_early(int member) noexcept {
  abort(text("rank {} left group {} before its calls were complete", world_rank(member), id_));
  while (!quiet()) sched_yield(); // a peer may be in the middle of a copy; it starts no new one
}

bool GroupState::quiet() const noexcept {
  for (int member = 0; member < size(); ++member) {
    if (members_[static_cast<std::size_t>(member)].busy.load(std::memory_order_seq_cst)) return false;
  }
  return true;
}

} // namespace triax::comm_local
