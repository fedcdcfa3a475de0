#include "control/server_store.hpp"

#include <utility>

#include "triax/text.hpp"

namespace triax::control {

namespace {

using Kind = Message::Kind;

constexpr std::size_t kMaxWaiting = 1024; // requests of one rank

Message answer_to(std::uint64_t id, Kind kind, std::string value = {}) {
  Message message;
  message.kind = kind;
  message.id = id;
  message.value = std::move(value);
  return message;
}

} // namespace

std::vector<Answer> ServerStore::handle(int rank, Message request) {
  const std::map<Id, Waiting>& waits = waiting_[static_cast<std::size_t>(rank)];
  const bool may_wait = request.kind == Kind::get || request.kind == Kind::barrier;
  if (may_wait && (waits.size() >= kMaxWaiting || waits.contains(request.id)))
    return {{rank, answer_to(request.id, Kind::refused, text("rank {} waits for too much at once", rank))}};
  switch (request.kind) {
    case Kind::set:
      return set(rank, request);
    case Kind::get: {
      if (const auto found = values_.find(request.key); found != values_.end())
        return {{rank, answer_to(request.id, Kind::value, found->second)}};
      for_key_[request.key].emplace_back(rank, request.id);
      waiting_[static_cast<std::size_t>(rank)].emplace(request.id, Waiting{false, request.key});
      return {};
    }
    case Kind::add: {
      Message sum = answer_to(request.id, Kind::number);
      std::int64_t& counter = counters_[request.key];
      // In unsigned numbers, whose overflow is no fault of the server's.
      counter =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(counter) + static_cast<std::uint64_t>(request.number));
      sum.number = counter;
      return {{rank, sum}};
    }
    case Kind::barrier:
      return barrier(rank, request);
    case Kind::forget:
      return forget(rank, request.id);
    default:
      return {{rank, answer_to(request.id, Kind::refused, "the store has no such request")}};
  }
}

std::vector<Answer> ServerStore::set(int rank, Message& request) {
  std::vector<Answer> answers{{rank, answer_to(request.id, Kind::done)}};
  std::string& value = values_[request.key];
  value = std::move(request.value);
  if (auto waiters = for_key_.extract(request.key)) {
    for (const auto& [other, id] : waiters.mapped()) {
      waiting_[static_cast<std::size_t>(other)].erase(id);
      answers.push_back({other, answer_to(id, Kind::value, value)});
    }
  }
  return answers;
}

std::vector<Answer> ServerStore::barrier(int rank, const Message& request) {
  std::map<int, Id>& there = in_barrier_[request.key];
  if (!there.emplace(rank, request.id).second)
    return {{rank, answer_to(request.id, Kind::refused,
                             text("rank {} is in the barrier \"{}\" already", rank, request.key))}};
  waiting_[static_cast<std::size_t>(rank)].emplace(request.id, Waiting{true, request.key});
  if (there.size() < waiting_.size()) return {};
  std::vector<Answer> answers;
  for (const auto& [other, id] : there) {
    waiting_[static_cast<std::size_t>(other)].erase(id);
    answers.push_back({other, answer_to(id, Kind::done)});
  }
  in_barrier_.erase(request.key);
  return answers;
}

std::vector<Answer> ServerStore::forget(int rank, Id id) {
  std::map<Id, Waiting>& waits = waiting_[static_cast<std::size_t>(rank)];
  const auto found = waits.find(id);
  if (found == waits.end()) return {}; // it has been answered
  const Waiting forgotten = std::move(found->second);
  waits.erase(found);
  Message answer = answer_to(id, Kind::missing);
  if (forgotten.in_barrier) answer.value = missing(forgotten.key); // while this rank is in it
  stop_waiting(rank, forgotten, id);
  return {{rank, answer}};
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
