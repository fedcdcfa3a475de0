#include "control/server_store.hpp"

#include <utility>

#include "triax/text.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;

constexpr std::size_t kMaxWaiting = 1024; // requests of one rank

} // namespace

void ServerStore::answer(int rank, Id id, Kind kind, std::string value) const {
  Message message = make_message(kind, 0, std::move(value));
  message.id = id;
  send_(rank, message);
}

void ServerStore::handle(int rank, Message request) {
  std::map<Id, Waiting>& waits = waiting_[static_cast<std::size_t>(rank)];
  const bool may_wait = request.kind == Kind::get || request.kind == Kind::barrier;
  if (may_wait && (waits.size() >= kMaxWaiting || waits.contains(request.id)))
    return answer(rank, request.id, Kind::refused, text("rank {} waits for too much at once", rank));
  switch (request.kind) {
    case Kind::set:
      return set(rank, request);
    case Kind::get:
      if (const auto found = values_.find(request.key); found != values_.end())
        return answer(rank, request.id, Kind::value, found->second);
      for_key_[request.key].emplace_back(rank, request.id);
      waits.emplace(request.id, Waiting{false, request.key});
      return;
    case Kind::add: {
      std::int64_t& counter = counters_[request.key];
      // In unsigned numbers, whose overflow is no fault of the server's.
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
  std::string& value = values_[request.key];
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
  std::map<int, Id>& there = in_barrier_[request.key];
  if (!there.emplace(rank, request.id).second)
    return answer(rank, request.id, Kind::refused, text("rank {} is in the barrier \"{}\" already", rank, request.key));
  waiting_[static_cast<std::size_t>(rank)].emplace(request.id, Waiting{true, request.key});
  if (there.size() < waiting_.size()) return;
  const auto all = in_barrier_.extract(request.key);
  for (const auto& [other, id] : all.mapped()) {
    waiting_[static_cast<std::size_t>(other)].erase(id);
    answer(other, id, Kind::done);
  }
}

void ServerStore::forget(int rank, Id id) {
  std::map<Id, Waiting>& waits = waiting_[static_cast<std::size_t>(rank)];
  const auto found = waits.find(id);
  if (found == waits.end()) return; // it has been answered
  const Waiting forgotten = std::move(found->second);
  waits.erase(found);
  std::string who = forgotten.in_barrier ? missing(forgotten.key) : std::string(); // while this rank is in it
  stop_waiting(rank, forgotten, id);
  answer(rank, id, Kind::missing, std::move(who));
}

std::string ServerStore::missing(const std::string& barrier) const {
  const std::map<int, Id>& there = in_barrier_.at(barrier);
  std::string ranks;
  for (int rank = 0; rank < static_cast<int>(waiting_.size()); ++rank)
    if (!there.contains(rank)) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return ranks;
}

void ServerStore::drop(int rank) {
  for (const auto& [id, waits] : std::exchange(waiting_[static_cast<std::size_t>(rank)], {}))
    stop_waiting(rank, waits, id);
}

void ServerStore::stop_waiting(int rank, const Waiting& waits, Id id) {
  if (waits.in_barrier) {
    const auto there = in_barrier_.find(waits.key);
    there->second.erase(rank);
    if (there->second.empty()) in_barrier_.erase(there);
    return;
  }
  const auto waiters = for_key_.find(waits.key);
  std::erase(waiters->second, std::pair(rank, id));
  if (waiters->second.empty()) for_key_.erase(waiters);
}

} // namespace triax::control
