// SPDX-License-Identifier: Apache-2.0
#include "bootstrap.hpp"

#include <algorithm>

#include "triax/error.hpp"

namespace triax::p2p {

namespace {

constexpr int kProtocol = 3; // version of tags, openings, plans

/// The values that a member publishes, in this order. The address is binary, and so the last.
enum Value : std::size_t { next, memory, host, address };

} // namespace

Bootstrap::Bootstrap(Transport& transport, const Group& group, Store& store, Deadline deadline, int& next)
    : transport_(transport),
      group_(group),
      next_(next),
      rendezvous_(transport.plugin(), kProtocol, {group, store, transport.device(), deadline}) {}

std::shared_ptr<PeerEndpoints> Bootstrap::join() {
  check_limits();
  return rendezvous_.run([this] {
    rendezvous_.publish({std::to_string(next_), std::string(transport_.memory_word()), transport_.host(),
                         std::string(transport_.address())});
    const std::vector<Rendezvous::Entry> members = rendezvous_.collect();
    rendezvous_.require_equal(members, Value::memory, "device_memory",
                              "set device_memory = \"staged\", or give all ranks the same libraries");
    std::shared_ptr<PeerEndpoints> endpoints = connect(members);
    try {
      warm_up_connections(*endpoints);
    } catch (...) {
      endpoints->close();
      if (transport_.retired()) transport_.keep(endpoints); // a hello is still in progress
      throw;
    }
    return endpoints;
  });
}

void Bootstrap::check_limits() const {
  const TagLimits limits = transport_.limits();
  TRIAX_REQUIRE(group_.size() <= limits.members, "{}: group {} has {} members; the maximum is {}", transport_.plugin(),
                group_.id, group_.size(), limits.members);
  if (next_ < limits.groups) return;
  throw Error(text("this rank has joined {} groups, which is the maximum", limits.groups), rendezvous_.where());
}

std::shared_ptr<PeerEndpoints> Bootstrap::connect(const std::vector<Rendezvous::Entry>& members) {
  // The group number must be unused on every member.
  int number = 0;
  std::vector<Endpoint*> endpoints;
  for (int member = 0; member < group_.size(); ++member) {
    const Rendezvous::Entry& entry = members[static_cast<std::size_t>(member)];
    number = std::max(number, std::stoi(entry[Value::next]));
    const int rank = group_.ranks[static_cast<std::size_t>(member)];
    endpoints.push_back(
        member == group_.group_rank ? nullptr : &transport_.connect(entry[Value::address], entry[Value::host], rank));
  }
  next_ = number + 1;
  return std::make_shared<PeerEndpoints>(transport_, group_, number, std::move(endpoints));
}

void Bootstrap::warm_up_connections(PeerEndpoints& endpoints) {
  endpoints.send_hello();
  while (true) {
    if (endpoints.aborted()) throw Error(endpoints.reason());
    std::string missing;
    for (int member = 0; member < group_.size(); ++member) {
      if (member == group_.group_rank || (endpoints.received_hello(member) && !endpoints.announcing(member))) continue;
      missing += (missing.empty() ? "" : ", ") + std::to_string(group_.ranks[static_cast<std::size_t>(member)]);
    }
    if (missing.empty()) return;
    if (rendezvous_.expired()) throw rendezvous_.timeout(missing, "connecting");
    rendezvous_.poll();
  }
}

} // namespace triax::p2p
