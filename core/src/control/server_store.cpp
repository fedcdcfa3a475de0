// SPDX-License-Identifier: Apache-2.0
#include "control/server_store.hpp"

#include <utility>

#include "control/rank_ranges.hpp"
#include "triax/text.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;

constexpr std::size_t kMaxWaiting = 1024;  // open requests of one rank
constexpr std::size_t kMaxKeyBytes = 4096; // of a key
constexpr std::size_t kKeyOverhead = 128;  // bytes that are counted for each key besides its text

} // namespace

void ServerStore::answer(int rank, Id id, Kind kind, std::string value) const {
  Message message = make_message(kind, 0, std::move(value));
  message.id = id;
  send_(rank, message);
}

void ServerStore::handle(int rank, Message request) {
  std::map<Id, Waiting>& waits = waiting_[static_cast<std::size_t>(rank)];
  if (request.key.size() > kMaxKeyBytes)
    return answer(rank, request.id, Kind::refused,
                  text("the key has {} bytes; the maximum is {}", request.key.size(), kMaxKeyBytes));
  if (bytes_ > max_bytes_ && (request.kind == Kind::set || request.kind == Kind::add))
    return answer(
        rank, request.id, Kind::refused,
        text("the job's store is full: its keys and values have {} bytes, but the maximum is {}", bytes_, max_bytes_));
  const bool may_wait = request.kind == Kind::get || request.kind == Kind::barrier;
  if (may_wait && (waits.size() >= kMaxWaiting || waits.contains(request.id)))
    return answer(rank, request.id, Kind::refused, text("rank {} has too many pending requests", rank));
  switch (request.kind) {
    case Kind::set:
      return set(rank, request);
    case Kind::get:
      if (const auto found = values_.find(request.key); found != values_.end())
        return answer(rank, request.id, Kind::value, found->second);
      for_key_[request.key].emplace(rank, request.id);
      waits.emplace(request.id, Waiting{false, request.key});
      return;
    case Kind::add: {
      const auto [found, is_new] = counters_.try_emplace(request.key);
      if (is_new) bytes_ += request.key.size() + kKeyOverhead;
      std::int64_t& counter = found->second;
      // Unsigned arithmetic, whose overflow is defined.
      counter =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(counter) + static_cast<std::uint64_t>(request.number));
      Message sum = make_message(Kind::number, counter);
      sum.id = request.id;
      return send_(rank, sum);
    }
    case Kind::barrier:
      return barrier(rank, request);
    default:
      return forget(rank, request.id);
  }
}

void ServerStore::set(int rank, Message& request) {
  const auto [found, is_new] = values_.try_emplace(request.key);
  std::string& value = found->second;
  bytes_ += (is_new ? request.key.size() + kKeyOverhead : 0) + request.value.size() - value.size();
  value = std::move(request.value);
  if (const auto waiters = for_key_.extract(request.key)) {
    for (const auto& [other, id] : waiters.mapped()) {
      waiting_[static_cast<std::size_t>(other)].erase(id);
      answer(other, id, Kind::value, value);
    }
  }
  answer(rank, request.id, Kind::done);
}

void ServerStore::barrier(int rank, const Message& request) {
  Barrier& barrier = barriers_[request.key];
  barrier.ids.resize(waiting_.size());
  std::optional<Id>& own = barrier.ids[static_cast<std::size_t>(rank)];
  if (own)
    return answer(rank, request.id, Kind::refused, text("rank {} is already in the barrier \"{}\"", rank, request.key));
  own = request.id;
  waiting_[static_cast<std::size_t>(rank)].emplace(request.id, Waiting{true, request.key});
  if (++barrier.count < waiting_.size()) return;
  const auto all = barriers_.extract(request.key);
  for (std::size_t other = 0; other < waiting_.size(); ++other) {
    const Id id = *all.mapped().ids[other];
    waiting_[other].erase(id);
    answer(static_cast<int>(other), id, Kind::done);
  }
}

void ServerStore::forget(int rank, Id id) {
  std::map<Id, Waiting>& waits = waiting_[static_cast<std::size_t>(rank)];
  const auto found = waits.find(id);
  if (found == waits.end()) return; // already answered
  const Waiting forgotten = std::move(found->second);
  waits.erase(found);
  std::string who = forgotten.in_barrier ? missing(forgotten.key) : std::string(); // while this rank is still in it
  stop_waiting(rank, forgotten, id);
  answer(rank, id, Kind::missing, std::move(who));
}

std::string ServerStore::missing(const std::string& barrier) const {
  const Barrier& of = barriers_.at(barrier);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < of.ids.size(); ++rank)
    if (!of.ids[rank]) ranks.push_back(static_cast<int>(rank));
  return rank_ranges(ranks);
}

std::int64_t ServerStore::counter(std::string_view key) const {
  const auto found = counters_.find(key);
  return found == counters_.end() ? 0 : found->second;
}

void ServerStore::drop(int rank) {
  for (const auto& [id, waits] : std::exchange(waiting_[static_cast<std::size_t>(rank)], {}))
    stop_waiting(rank, waits, id);
}

void ServerStore::stop_waiting(int rank, const Waiting& waits, Id id) {
  if (waits.in_barrier) {
    const auto barrier = barriers_.find(waits.key);
    barrier->second.ids[static_cast<std::size_t>(rank)].reset();
    if (--barrier->second.count == 0) barriers_.erase(barrier);
    return;
  }
  const auto waiters = for_key_.find(waits.key);
  waiters->second.erase(std::pair(rank, id));
  if (waiters->second.empty()) for_key_.erase(waiters);
}

} // namespace triax::control
