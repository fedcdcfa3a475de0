// SPDX-License-Identifier: Apache-2.0
#include "join.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "triax/error.hpp"

namespace triax::comm_ucx {

namespace {

using namespace std::chrono_literals;

constexpr auto kSlice = 50ms;                   // between checks of the abort flag while the store waits
constexpr const char* kProtocol = "comm-ucx 2"; // equal on all members: version of tags, openings, plans

std::string ranks_text(const Group& group) {
  std::string list;
  for (const int rank : group.ranks) list += (list.empty() ? "" : ", ") + std::to_string(rank);
  return list;
}

} // namespace

Joining::Joining(Transport& transport, const Group& group, Store& store, Deadline deadline, int& next)
    : transport_(transport), group_(group), store_(store), deadline_(deadline), next_(next) {}

std::string Joining::card_key(int member) const {
  return text("{}/{}", key_, member);
}

std::shared_ptr<PeerEndpoints> Joining::join() {
  check_limits();
  // A member's k-th join of the group matches the k-th join of the others, on any of its backends.
  const std::string group_key = text("comm-ucx/{}", group_.id);
  key_ = text("{}/{}", group_key, store_.add(text("{}/joins/{}", group_key, group_.index), 1));
  try {
    publish();
    const std::vector<Card> cards = collect();
    agree(cards);
    std::shared_ptr<PeerEndpoints> links = connect(cards);
    try {
      meet(*links);
    } catch (...) {
      links->close();
      if (transport_.retired()) transport_.keep(links); // a greeting is still in progress
      throw;
    }
    return links;
  } catch (const std::exception& error) {
    give_up(error.what());
    throw;
  }
}

void Joining::check_limits() const {
  TRIAX_REQUIRE(group_.size() <= kMaxMembers, "comm-ucx: group {} has {} members; {} are the most", group_.id,
                group_.size(), kMaxMembers);
  if (next_ < kMaxGroups) return;
  throw Error(text("this rank has joined {} groups, which is the maximum", kMaxGroups), text("group {}", group_.id));
}

void Joining::publish() {
  if (store_.add(key_ + "/given up", 0) > 0) check_given_up();
  store_.set(card_key(group_.index), text("{}\n{}\n{}\n{}\n{}\n", kProtocol, next_, ranks_text(group_),
                                          transport_.memory_word(), transport_.host()) +
                                         transport_.address());
}

/// Returns false if the key is not there within kSlice; rethrows other errors of the store.
bool Joining::fetch(const std::string& key, std::string& value) {
  const Deadline slice = std::min(deadline_, Clock::now() + kSlice);
  try {
    value = store_.get(key, slice);
    return true;
  } catch (const Error&) {
    if (Clock::now() < slice) throw; // not a timeout: the store has failed
    return false;
  }
}

std::vector<Joining::Card> Joining::collect() {
  std::vector<Card> cards(static_cast<std::size_t>(group_.size()));
  std::string value, missing;
  for (int member = 0; member < group_.size(); ++member) {
    while (!fetch(card_key(member), value)) {
      transport_.device().abort_flag().check();
      transport_.device().progress();
      check_given_up();
      if (Clock::now() < deadline_) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(group_.ranks[static_cast<std::size_t>(member)]);
      break;
    }
    if (missing.empty()) cards[static_cast<std::size_t>(member)] = read(member, value);
  }
  if (missing.empty()) return cards;
  throw Error(text("timed out waiting for ranks to join: rank {}", missing), text("group {}", group_.id),
              "they may be slow, lost, or in another group");
}

Joining::Card Joining::read(int member, const std::string& value) const {
  std::array<std::string, 5> lines;
  std::size_t begin = 0;
  for (std::string& line : lines) {
    const std::size_t end = std::min(value.find('\n', begin), value.size());
    line = value.substr(begin, end - begin);
    begin = std::min(end + 1, value.size());
  }
  if (lines[0] != kProtocol) {
    throw Error(text("rank {} has protocol \"{}\", rank {} \"{}\"", group_.ranks[static_cast<std::size_t>(member)],
                     lines[0], group_.ranks[static_cast<std::size_t>(group_.index)], kProtocol),
                text("group {}", group_.id), "use the same version of comm-ucx on all ranks");
  }
  return {std::stoi(lines[1]), lines[2], lines[3], lines[4], value.substr(begin)};
}

void Joining::agree(const std::vector<Card>& cards) const {
  const std::string mine = ranks_text(group_);
  for (int member = 0; member < group_.size(); ++member) {
    const Card& card = cards[static_cast<std::size_t>(member)];
    if (card.memory != transport_.memory_word()) {
      throw Error(text("rank {} moves {} memory, rank {} {}", group_.ranks[static_cast<std::size_t>(member)],
                       card.memory, group_.ranks[static_cast<std::size_t>(group_.index)], transport_.memory_word()),
                  text("group {}", group_.id), "set device_memory = \"staged\", or give all ranks the same UCX");
    }
    if (card.ranks == mine) continue;
    throw Error(
        text("has other ranks on rank {} ({}) than on rank {} ({})", group_.ranks[static_cast<std::size_t>(member)],
             card.ranks, group_.ranks[static_cast<std::size_t>(group_.index)], mine),
        text("group {}", group_.id));
  }
}

std::shared_ptr<PeerEndpoints> Joining::connect(const std::vector<Card>& cards) {
  // The group number must be unused on every member.
  int number = 0;
  std::vector<Endpoint*> endpoints;
  for (int member = 0; member < group_.size(); ++member) {
    const Card& card = cards[static_cast<std::size_t>(member)];
    number = std::max(number, card.next);
    const int rank = group_.ranks[static_cast<std::size_t>(member)];
    endpoints.push_back(member == group_.index ? nullptr : &transport_.connect(card.address, card.host, rank));
  }
  next_ = number + 1;
  return std::make_shared<PeerEndpoints>(transport_, group_, number, std::move(endpoints));
}

void Joining::meet(PeerEndpoints& links) {
  links.greet();
  wait_for_all("timed out waiting for ranks to join", [&](int member) {
    if (links.aborted()) throw Error(links.reason());
    return links.greeted(member) && !links.telling(member);
  });
}

template <class Ready>
void Joining::wait_for_all(std::string_view what, Ready ready) {
  auto look = Clock::now() + kSlice;
  while (true) {
    std::string missing;
    for (int member = 0; member < group_.size(); ++member) {
      if (member == group_.index || ready(member)) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(group_.ranks[static_cast<std::size_t>(member)]);
    }
    if (missing.empty()) return;
    transport_.device().abort_flag().check();
    const auto now = Clock::now();
    if (now >= look) {
      look = now + kSlice;
      check_given_up();
    }
    if (now >= deadline_) {
      throw Error(text("{}: rank {}", what, missing), text("group {}", group_.id),
                  "they may be slow, lost, or in another group");
    }
    if (!transport_.device().progress()) sched_yield();
  }
}

void Joining::check_given_up() {
  if (store_.add(key_ + "/given up", 0) == 0) return;
  std::string why;
  fetch(key_ + "/why", why);
  throw Error(text("the other ranks failed: {}", why), text("group {}", group_.id), "start the ranks together");
}

void Joining::give_up(std::string_view why) noexcept {
  try {
    const int rank = group_.ranks[static_cast<std::size_t>(group_.index)];
    store_.set(key_ + "/why", text("rank {} could not join: {}", rank, why));
    store_.add(key_ + "/given up", 1);
  } catch (const std::exception&) { // the store is gone, so no member waits there
    return;
  }
}

} // namespace triax::comm_ucx
