// SPDX-License-Identifier: Apache-2.0
// The tables of the communicator suite, and what their files share.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "triax/conformance/communicator_checks.hpp"

namespace triax::conformance {

using CommCheck = CheckOf<CommunicatorSubject>;

std::span<const CommCheck> life_checks();
std::span<const CommCheck> post_checks();
std::span<const CommCheck> collective_checks();
std::span<const CommCheck> movement_checks();
std::span<const CommCheck> transfer_checks();
std::span<const CommCheck> count_checks();
std::span<const CommCheck> abort_checks();
std::span<const CommCheck> loss_checks();

/// Runs `body` in a group of every size. Ends at the first size that fails: larger groups would fail in the same way.
inline void for_groups(const CommunicatorSubject& subject, Report& report,
                       const std::function<void(Rank&, Communicator&)>& body) {
  for (int members = 2; members <= subject.max_group && !report.has_failed(); ++members)
    run_ranks(subject.setup, members, report, [&body](Rank& rank) { body(rank, rank.join(kTensorAxis)); });
}

/// Runs `body` in one group.
inline void in_group(const CommunicatorSubject& subject, int members, Report& report,
                     const std::function<void(Rank&, Communicator&)>& body) {
  run_ranks(subject.setup, members, report, [&body](Rank& rank) { body(rank, rank.join(kTensorAxis)); });
}

/// One i32 in the rank's memory.
inline TensorView number(Rank& rank, std::int32_t value) {
  return rank.tensor<std::int32_t>(DType::i32, {1}, {value});
}
inline std::int32_t number_in(Rank& rank, const TensorView& view) {
  return rank.values<std::int32_t>(view).front();
}
inline Transfer send(int peer, const TensorView& view, int channel = 0) {
  return {Direction::send, peer, channel, view};
}
inline Transfer receive(int peer, const TensorView& view, int channel = 0) {
  return {Direction::receive, peer, channel, view};
}

/// Exchanges one number on both edges between members 0 and 1 of a group of two: a library may connect them now.
inline void connect(Rank& rank, Communicator& comm) {
  const TensorView out = number(rank, 0), in = number(rank, 0);
  const Transfer set[] = {send(1 - comm.rank(), out), receive(1 - comm.rank(), in)};
  rank.wait(comm.exchange(set, rank.stream()));
}

/// Calls advance only in the progress loop, and compare themselves with those of the other members first. On a GPU's
/// stream they run as soon as they can, without a comparison.
inline std::string unless_host_advances(const CommunicatorSubject& subject) {
  return subject.traits.stream_ordered ? "the backend is stream-ordered: no host advances or compares its calls" : "";
}
inline std::string unless_tagged(const CommunicatorSubject& subject) {
  return subject.traits.order == CommTraits::Order::tagged ? "" : "the backend does not declare Order::tagged";
}
inline std::string unless_rank_order(const CommunicatorSubject& subject) {
  const bool declared = subject.traits.reduction == CommTraits::Reduction::rank_order;
  return declared ? "" : "the backend does not declare Reduction::rank_order";
}
inline std::string if_unspecified(const CommunicatorSubject& subject) {
  const bool unspecified = subject.traits.reduction == CommTraits::Reduction::unspecified;
  return unspecified ? "the backend declares Reduction::unspecified" : "";
}
inline std::string unless_buffered(const CommunicatorSubject& subject) {
  return subject.traits.send == CommTraits::Send::buffered ? "" : "the backend does not declare Send::buffered";
}
inline std::string unless_processes(const CommunicatorSubject& subject) {
  return subject.setup.processes ? "" : "the ranks are threads, which cannot be killed; use --processes";
}

} // namespace triax::conformance
