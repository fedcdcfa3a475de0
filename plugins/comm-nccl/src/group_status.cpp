// SPDX-License-Identifier: Apache-2.0
#include "group_status.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "triax/error.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::comm_nccl {

namespace {

using namespace std::chrono_literals;

constexpr auto kStatusPoll = 20ms; // between polls while the store waits
constexpr double kAnswerTime = 5;  // seconds to wait for a value whose counter was seen

} // namespace

GroupStatus::GroupStatus(Store& store, std::string key, const Group& group)
    : store_(store), key_(std::move(key)), group_(group), left_(static_cast<std::size_t>(group.size())) {}

std::string GroupStatus::member_key(std::string_view what, int member) const {
  return text("{}/{}/{}", key_, what, member);
}

void GroupStatus::announce_abort(std::string_view why) {
  if (store_.add(key_ + "/aborts", 1) == 1) store_.set(key_ + "/abort reason", why);
  store_.add(key_ + "/changes", 1);
}

void GroupStatus::announce_left(const Posted& posted) {
  std::string value = text("{}", posted.collectives);
  for (std::size_t peer = 0; peer < posted.sends.size(); ++peer)
    value += text(" {} {}", posted.sends[peer], posted.receives[peer]);
  store_.set(member_key("left with", group_.group_rank), value);
  store_.add(member_key("left", group_.group_rank), 1);
  store_.add(key_ + "/changes", 1);
}

bool GroupStatus::changed() {
  const std::int64_t now = store_.add(key_ + "/changes", 0);
  if (now == seen_) return false;
  seen_ = now;
  for (int member = 0; member < group_.size(); ++member)
    if (member != group_.group_rank && !left_[static_cast<std::size_t>(member)]) read_left(member);
  return true;
}

void GroupStatus::read_left(int member) {
  if (store_.add(member_key("left", member), 0) == 0) return;
  std::istringstream value(store_.get(member_key("left with", member), deadline_in(kAnswerTime)));
  Posted posted(group_.size());
  value >> posted.collectives;
  for (std::size_t peer = 0; peer < posted.sends.size(); ++peer) value >> posted.sends[peer] >> posted.receives[peer];
  left_[static_cast<std::size_t>(member)] = std::move(posted);
}

std::optional<std::string> GroupStatus::aborted() {
  if (store_.add(key_ + "/aborts", 0) == 0) return std::nullopt;
  return store_.get(key_ + "/abort reason", deadline_in(kAnswerTime));
}

void GroupStatus::barrier(std::uint64_t turn, Deadline deadline, const std::function<void()>& check) {
  const std::string open = text("{}/barrier {}", key_, turn);
  store_.add(member_key("barriers", group_.group_rank), 1);
  if (store_.add(open + "/arrived", 1) == group_.size()) store_.set(open, "");
  WaitDeadline until(deadline);
  while (true) {
    const Deadline slice = Clock::now() + std::min<Clock::duration>(kStatusPoll, until.slice());
    try {
      store_.get(open, slice);
      return;
    } catch (const Error&) {
      if (Clock::now() < slice) throw; // not a timeout: the store has failed
    }
    check();
    if (!until.passed()) continue;
    throw Error(text("timed out waiting for rank {}", late(turn)), text("barrier of group {}", group_.id),
                "the rank may be slow or lost; train.stall_timeout_s sets the timeout");
  }
}

std::string GroupStatus::late(std::uint64_t turn) {
  std::string ranks;
  for (int member = 0; member < group_.size(); ++member) {
    const std::int64_t arrived = store_.add(member_key("barriers", member), 0);
    if (arrived >= static_cast<std::int64_t>(turn)) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(group_.ranks[static_cast<std::size_t>(member)]);
  }
  return ranks;
}

} // namespace triax::comm_nccl
