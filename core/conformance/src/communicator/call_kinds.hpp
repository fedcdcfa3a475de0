// SPDX-License-Identifier: Apache-2.0
// One call of each kind, on buffers that have a part for each member, for checks of what every kind must keep.
#pragma once

#include <cstdint>

#include "communicator_check_tables.hpp"

namespace triax::conformance {

/// A call of a group. `in` and `out` are f32 and have as many parts as the group has members; some calls use only the
/// first part of one.
struct CallKind {
  const char* name;
  Work (*post)(Communicator& comm, const TensorView& in, const TensorView& out, Stream& stream);
  /// Each element in this part of `out` after the call, if those of each member's `in` are 1 + its index, and those of
  /// `out` were kUntouched.
  int (*expected)(const Communicator& comm, int part);
};

inline constexpr int kUntouched = -1;

inline TensorView first_part(const Communicator& comm, const TensorView& view) {
  return view.slice(0, 0, view.elements() / comm.size());
}

/// The sum over the members, in the first part.
inline int sum_in_first_part(const Communicator& comm, int part) {
  return part == 0 ? comm.size() * (comm.size() + 1) / 2 : kUntouched;
}

/// The value of the member whose index is `part`.
inline int value_of_member(const Communicator&, int part) {
  return 1 + part;
}

inline int member_before(const Communicator& comm) {
  return (comm.rank() + comm.size() - 1) % comm.size();
}

inline constexpr CallKind kCallKinds[] = {
    {"all_reduce",
     [](Communicator& comm, const TensorView& in, const TensorView& out, Stream& stream) {
       return comm.all_reduce(first_part(comm, in), first_part(comm, out), Reduce::sum, stream);
     },
     sum_in_first_part},
    {"reduce_scatter",
     [](Communicator& comm, const TensorView& in, const TensorView& out, Stream& stream) {
       return comm.reduce_scatter(in, first_part(comm, out), Reduce::sum, stream);
     },
     sum_in_first_part},
    {"all_gather",
     [](Communicator& comm, const TensorView& in, const TensorView& out, Stream& stream) {
       return comm.all_gather(first_part(comm, in), out, stream);
     },
     value_of_member},
    {"all_to_all",
     [](Communicator& comm, const TensorView& in, const TensorView& out, Stream& stream) {
       return comm.all_to_all(in, out, stream);
     },
     value_of_member},
    {"broadcast",
     [](Communicator& comm, const TensorView& in, const TensorView& out, Stream& stream) {
       return comm.broadcast(first_part(comm, comm.rank() == 0 ? in : out), 0, stream);
     },
     [](const Communicator& comm, int part) { return comm.rank() > 0 && part == 0 ? 1 : kUntouched; }},
    {"exchange",
     [](Communicator& comm, const TensorView& in, const TensorView& out, Stream& stream) {
       const Transfer set[] = {send((comm.rank() + 1) % comm.size(), first_part(comm, in)),
                               receive(member_before(comm), first_part(comm, out))};
       return comm.exchange(set, stream);
     },
     [](const Communicator& comm, int part) { return part == 0 ? 1 + member_before(comm) : kUntouched; }},
};

} // namespace triax::conformance
