// SPDX-License-Identifier: Apache-2.0
// The operations of a communicator that are measured: their sizes, and how a time becomes a bandwidth.
//
// Sizes and bandwidths are those of nccl-tests (doc/PERFORMANCE.md there). The size of an operation is that of its
// larger buffer. Algorithm bandwidth is size / time. Bus bandwidth is what a link carries if each rank sends no more
// than it must, so it can be compared with the speed of the hardware for any number of ranks.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "triax/communicator.hpp"

namespace triax::bench {

/// exchange: each rank sends to the next rank and receives from the one before it. send: each even rank sends messages
/// to the next rank, many of them in flight.
enum class CommOperation { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, exchange, send };

std::string name_of(CommOperation operation); // "all_reduce"
std::vector<std::string> comm_operation_names();
std::optional<CommOperation> find_comm_operation(std::string_view name);

/// Adds elements.
bool reduces(CommOperation operation);
/// Bus bandwidth / algorithm bandwidth.
double bus_factor(CommOperation operation, int ranks);

/// Elements of a rank's input and output. A broadcast has one view, `out`.
struct CommShape {
  std::int64_t in = 0, out = 0;
};
CommShape shape_of(CommOperation operation, std::int64_t elements, int ranks);
/// Sizes must be a multiple of this number of bytes: an element, or one for each rank.
std::int64_t size_unit(CommOperation operation, DType dtype, int ranks);

/// Whether it has no Collective.
bool is_point_to_point(CommOperation operation);
/// The collective of `elements`.
Collective collective_of(CommOperation operation, DType dtype, std::int64_t elements, int ranks);

} // namespace triax::bench
