// SPDX-License-Identifier: Apache-2.0
// Which fault the options select, and which posts of a communicator have it.
//
// A decision depends on the seed, the rank, the group and the number of the post only, so a run with the same seed has
// its faults at the same posts.
#pragma once

#include <cstdint>
#include <string>
#include <triax/communicator.hpp>
#include <triax/options.hpp>
#include <triax/random.hpp>

namespace triax::comm_faulty {

enum class Fault : std::uint8_t {
  none,
  delay,
  reorder,
  drop,
  corrupt,
  fail,
  die,
  hang_post,
  hang_advance,
  hang_join,
  refuse
};
const char* name_of(Fault fault) noexcept;

struct FaultOptions {
  Fault fault = Fault::none;
  int rank = -1;         // in the world; -1: all
  std::string axis = {}; // axis of the groups that get the fault, "tensor*data" or "world"; empty: all
  std::int64_t at = 0;   // number of the post that has it, from 1; 0: each, with the probability
  double probability = 1;
  std::uint64_t seed = 0;
  double delay_s = 0; // longest time for which delay and reorder hold a call back

  /// Throws Error if options contradict each other.
  static FaultOptions read(const Options& options);
  bool selects(int in_rank) const noexcept { return rank < 0 || rank == in_rank; }
  bool selects(const Group& group) const noexcept { return axis.empty() || axis == group.axis; }
};

/// The fault of one post.
struct Injection {
  std::uint64_t post = 0; // its number in its communicator, from 1
  bool is_injected = false;
  std::uint32_t duration = 0, bit = 0, order = 0; // random
};

/// The injections of one communicator.
class InjectionPlan {
 public:
  InjectionPlan(const FaultOptions& options, const Group& group);
  /// Call it once for each post. `receives`: whether the member receives data in it. A corruption counts these posts
  /// only.
  Injection next(bool receives) noexcept;

 private:
  const FaultOptions& options_;
  const bool is_here_; // the rank and the group are selected
  const PhiloxKey key_;
  const std::uint32_t group_, rank_;
  std::uint64_t posts_ = 0, counted_ = 0;
};

} // namespace triax::comm_faulty
