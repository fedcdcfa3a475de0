// SPDX-License-Identifier: Apache-2.0
#include "triax/rendezvous.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace triax {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50); // between checks while the store waits

/// Every entry begins with the protocol and the ranks of the group.
constexpr std::size_t kOwnLines = 2;

} // namespace

std::string ranks_text(const Group& group) {
  std::string list;
  for (const int rank : group.ranks) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  return list;
}

Rendezvous::Rendezvous(std::string_view backend, int version, const Context& context)
    : context_(context), deadline_(context.deadline), protocol_(text("{} {}", backend, version)) {
  const std::string group_key = text("{}/{}", backend, context.group.id);
  key_ = text("{}/{}", group_key, context.store.add(text("{}/joins/{}", group_key, context.group.group_rank), 1));
}

std::string Rendezvous::rank_text(int member) const {
  return text("rank {}", context_.group.ranks[static_cast<std::size_t>(member)]);
}

void Rendezvous::publish(std::initializer_list<std::string> values) {
  std::string entry = text("{}\n{}", protocol_, ranks_text(context_.group));
  for (const std::string& value : values) entry.append("\n").append(value);
  values_ = values.size();
  context_.store.set(text("{}/entry {}", key_, context_.group.group_rank), entry);
}

/// Returns false if the key does not exist within kPollInterval; rethrows other errors of the store.
bool Rendezvous::fetch(const std::string& key, std::string& value) {
  const Deadline slice = Clock::now() + kPollInterval;
  try {
    value = context_.store.get(key, slice);
    return true;
  } catch (const Error&) {
    if (Clock::now() < slice) throw; // not a timeout: the store has failed
    return false;
  }
}

std::vector<Rendezvous::Entry> Rendezvous::collect() {
  std::vector<Entry> entries;
  std::string value, absent;
  for (int member = 0; member < context_.group.size(); ++member) {
    bool found = false;
    while (!(found = fetch(text("{}/entry {}", key_, member), value)) && !expired()) poll();
    if (!found)
      absent += (absent.empty() ? "" : ", ") + std::to_string(context_.group.ranks[static_cast<std::size_t>(member)]);
    else if (absent.empty())
      entries.push_back(parse(member, value));
  }
  if (!absent.empty()) throw timeout(absent);
  return entries;
}

Rendezvous::Entry Rendezvous::parse(int member, const std::string& value) const {
  Entry lines;
  std::size_t begin = 0;
  while (begin <= value.size() && lines.size() < kOwnLines + values_) {
    const bool is_last = lines.size() + 1 == kOwnLines + values_;
    const std::size_t end = is_last ? value.size() : std::min(value.find('\n', begin), value.size());
    lines.push_back(value.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string own = rank_text(context_.group.group_rank);
  if (lines[0] != protocol_)
    throw Error(text("{} has protocol \"{}\", {} has \"{}\"", rank_text(member), lines[0], own, protocol_), where(),
                "use the same plugins on all ranks");
  if (lines.size() < kOwnLines + values_)
    throw Error(text("the entry of {} has {} values, not {}", rank_text(member), lines.size() - kOwnLines, values_),
                where(), "use the same plugins on all ranks");
  if (lines[1] != ranks_text(context_.group))
    throw Error(text("the group has ranks {} on {}, but {} on {}", lines[1], rank_text(member),
                     ranks_text(context_.group), own),
                where(), "give all ranks the same TOML file, and each rank a different number");
  return {lines.begin() + kOwnLines, lines.end()};
}

void Rendezvous::require_equal(const std::vector<Entry>& members, std::size_t at, std::string_view what,
                               std::string_view hint) const {
  const std::string& own = members[static_cast<std::size_t>(context_.group.group_rank)][at];
  for (int member = 0; member < context_.group.size(); ++member) {
    const std::string& theirs = members[static_cast<std::size_t>(member)][at];
    if (theirs != own)
      throw Error(
          text("{} has {} {}, {} has {}", rank_text(member), what, theirs, rank_text(context_.group.group_rank), own),
          where(), std::string(hint));
  }
}

void Rendezvous::set(std::string_view name, std::string_view value) {
  context_.store.set(text("{}/{}", key_, name), value);
}

std::string Rendezvous::get(std::string_view name) {
  std::string value;
  while (!fetch(text("{}/{}", key_, name), value)) {
    if (expired()) throw Error(text("timed out waiting for {}", name), where(), "see the logs of the other ranks");
    poll();
  }
  return value;
}

void Rendezvous::reach(std::string_view name) {
  context_.store.add(text("{}/{} {}", key_, name, context_.group.group_rank), 1);
}

std::string Rendezvous::missing(std::string_view name) {
  std::string list;
  for (int member = 0; member < context_.group.size(); ++member)
    if (context_.store.add(text("{}/{} {}", key_, name, member), 0) == 0)
      list += (list.empty() ? "" : ", ") + std::to_string(context_.group.ranks[static_cast<std::size_t>(member)]);
  return list;
}

void Rendezvous::poll() {
  context_.device.abort_flag().check();
  if (const auto now = Clock::now(); now >= next_check_) {
    next_check_ = now + kPollInterval;
    check();
  }
  if (!context_.device.progress()) sched_yield();
}

Error Rendezvous::timeout(std::string_view ranks, std::string_view during) const {
  return Error(text("{}{}timed out waiting for rank {}", during, during.empty() ? "" : ": ", ranks), where(),
               "the ranks may be slow, dead, or in another group: see their logs");
}

void Rendezvous::check() {
  if (context_.store.add(key_ + "/failures", 0) == 0) return;
  std::string why;
  fetch(key_ + "/why", why);
  throw Error(text("the other ranks failed: {}", why), where(), "start the ranks together");
}

void Rendezvous::publish_failure(std::string_view why) noexcept {
  try {
    context_.store.set(key_ + "/why", text("{} could not join: {}", rank_text(context_.group.group_rank), why));
    context_.store.add(key_ + "/failures", 1);
  } catch (const std::exception&) { // the store is gone, so no member waits there
    return;
  }
}

} // namespace triax
