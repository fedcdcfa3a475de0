// SPDX-License-Identifier: Apache-2.0
// The state that a rank keeps from step to step and a file of the run must hold: master weights and the optimizer's
// state, as parts of global tensors. The names, boxes and owners do not depend on how many ranks there are.
//
// Threads: constants, any thread; the views belong to the rank's main thread. Ownership: a KeptTensor refers to the
// rank's state, which must outlive it. Errors: Error for a range outside the parameter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/offloaded_state.hpp"
#include "executor/parameters.hpp"

namespace triax::executor {

/// A box of a global tensor, whose elements lie one after another in a range of a rank's storage.
struct Box {
  Shape begin, size;       // in the global tensor
  std::int64_t offset = 0; // position of its first element in the range
};

/// The boxes of elements [first, first + count) of a parameter, as it is stored without padding, seen flat. In the
/// order of storage.
std::vector<Box> boxes_of(const ParamSpec& spec, std::int64_t first, std::int64_t count);

struct KeptTensor {
  std::string parameter; // "block 3/attention.qkv.weight"
  std::string name;      // "master", kReadWeightsName, or the name that the optimizer gives it: "m"
  const ParamSpec* spec = nullptr;
  TensorView view; // of the type that is saved, flat: the elements `held`; without data if they are offloaded
  OwnedPart held;  // all that the rank has of it, without padding
  /// The part that this rank saves. Over all ranks, these parts have each element of the global tensor once.
  OwnedPart saved;
  OffloadedTensor offloaded{}; // the elements `held`, if they are not in memory
};

inline constexpr const char* kMasterName = "master";
/// The weights that layers read, in the type that they read, if an update may be pending (DelayedUpdate). The name
/// cannot be that of an optimizer's state. Files without it have no pending update.
inline constexpr const char* kReadWeightsName = "working.delayed";

} // namespace triax::executor
