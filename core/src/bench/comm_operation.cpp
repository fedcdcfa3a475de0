// SPDX-License-Identifier: Apache-2.0
#include "bench/comm_operation.hpp"

#include <array>
#include <utility>

namespace triax::bench {

namespace {

using Kind = Collective::Kind;

constexpr std::array kCommOperations = {
    CommOperation::all_reduce, CommOperation::reduce_scatter, CommOperation::all_gather, CommOperation::all_to_all,
    CommOperation::broadcast,  CommOperation::exchange,       CommOperation::send};

Kind kind_of(CommOperation operation) {
  switch (operation) {
    case CommOperation::reduce_scatter:
      return Kind::reduce_scatter;
    case CommOperation::all_gather:
      return Kind::all_gather;
    case CommOperation::all_to_all:
      return Kind::all_to_all;
    case CommOperation::broadcast:
      return Kind::broadcast;
    default:
      return Kind::all_reduce;
  }
}

/// Whether a buffer has a part for each rank.
bool has_parts(CommOperation operation) {
  return operation == CommOperation::reduce_scatter || operation == CommOperation::all_gather ||
         operation == CommOperation::all_to_all;
}

} // namespace

std::string name_of(CommOperation operation) {
  if (operation == CommOperation::exchange) return "exchange";
  if (operation == CommOperation::send) return "send";
  return triax::name_of(kind_of(operation));
}

std::vector<std::string> comm_operation_names() {
  std::vector<std::string> out;
  out.reserve(kCommOperations.size());
  for (const CommOperation operation : kCommOperations) out.push_back(name_of(operation));
  return out;
}

std::optional<CommOperation> find_comm_operation(std::string_view name) {
  for (const CommOperation operation : kCommOperations)
    if (name_of(operation) == name) return operation;
  return std::nullopt;
}

bool is_point_to_point(CommOperation operation) {
  return operation == CommOperation::exchange || operation == CommOperation::send;
}

bool reduces(CommOperation operation) {
  return operation == CommOperation::all_reduce || operation == CommOperation::reduce_scatter;
}

double bus_factor(CommOperation operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  if (operation == CommOperation::all_reduce) return 2 * others;
  return has_parts(operation) ? others : 1;
}

CommShape shape_of(CommOperation operation, std::int64_t elements, int ranks) {
  if (operation == CommOperation::reduce_scatter) return {elements, elements / ranks};
  if (operation == CommOperation::all_gather) return {elements / ranks, elements};
  if (operation == CommOperation::broadcast) return {0, elements};
  return {elements, elements};
}

std::int64_t size_unit(CommOperation operation, DType dtype, int ranks) {
  const auto element = static_cast<std::int64_t>(bytes_of(dtype));
  return has_parts(operation) ? element * ranks : element;
}

Collective collective_of(CommOperation operation, DType dtype, std::int64_t elements, int ranks) {
  const CommShape shape = shape_of(operation, elements, ranks);
  Collective out;
  out.kind = kind_of(operation);
  out.dtype = dtype;
  out.elements = operation == CommOperation::broadcast ? shape.out : shape.in;
  return out;
}

} // namespace triax::bench
