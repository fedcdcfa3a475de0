// SPDX-License-Identifier: Apache-2.0
// Which elements dropout drops: the numbering of kernel_ops.hpp, for kernels and for tests on the host.
//
// Host threads: any. Kernels call these functions, too. Ownership: `samples` is device memory (host memory in tests).
// Blocking: never. Errors: none.
#pragma once

#include <cstdint>

#include "triax/cuda/host_device.hpp"
#include "triax/kernel_ops.hpp"
#include "triax/random.hpp"

namespace triax::cuda {

/// Dropout of a view, as kernels get it: the fields of Drop, and the sizes of the view. threshold: 0 if nothing is
/// dropped.
struct DropPlan {
  PhiloxKey key{};
  std::uint32_t site = 0, threshold = 0;
  float scale = 1;
  const std::int64_t* samples = nullptr; // running number of each sample of the microbatch
  std::int64_t batch = 1;                // number of samples
  std::int64_t head0 = 0, row0 = 0, column0 = 0, rows = 0, width = 0;
  bool scores = false; // [b, a, sq, sk]; else [rows, n]
  std::int64_t heads = 1, queries = 1, columns = 1;
};

/// The plan without the sizes of a view.
inline DropPlan drop_plan(const Drop& drop) {
  return {drop.key,
          drop.site,
          drop_threshold(drop.p),
          static_cast<float>(1.0 / (1.0 - static_cast<double>(drop.p))),
          drop.samples.as<const std::int64_t>(),
          drop.samples.elements(),
          drop.head0,
          drop.row0,
          drop.column0,
          drop.rows,
          drop.width};
}
/// The plan of an operation.
inline DropPlan drop_plan(const Dropout& args) {
  DropPlan plan = drop_plan(args.drop);
  plan.scores = args.x.rank() == 4;
  plan.columns = args.x.size(-1);
  if (plan.scores) {
    plan.heads = args.x.size(1);
    plan.queries = args.x.size(2);
  }
  return plan;
}

/// An element of a sample.
struct DropIndex {
  std::int64_t sample;  // in the microbatch
  std::int64_t element; // in the sample's global tensor
};

/// For a column of a row of the view; rows are numbered over all dimensions but the last.
TRIAX_HD inline DropIndex drop_index(const DropPlan& plan, std::int64_t row, std::int64_t column) {
  column += plan.column0;
  if (!plan.scores) return {row % plan.batch, (plan.row0 + row / plan.batch) * plan.width + column};
  const std::int64_t head = plan.head0 + row / plan.queries % plan.heads, query = plan.row0 + row % plan.queries;
  return {row / (plan.heads * plan.queries), (head * plan.rows + query) * plan.width + column};
}

/// For element `i` of the view, in row order.
TRIAX_HD inline DropIndex drop_index(const DropPlan& plan, std::int64_t i) {
  return drop_index(plan, i / plan.columns, i % plan.columns);
}

/// Whether element `i` of the view, in row order, is dropped.
TRIAX_HD inline bool dropped(const DropPlan& plan, std::int64_t i) {
  const DropIndex index = drop_index(plan, i);
  const auto element = static_cast<std::uint64_t>(index.element);
  const PhiloxBlock words =
      philox_at(plan.key, element, plan.site, static_cast<std::uint32_t>(plan.samples[index.sample]));
  const unsigned at = element % 4; // selected without indexing, so that the words stay in registers
  const std::uint32_t word = at == 0 ? words[0] : at == 1 ? words[1] : at == 2 ? words[2] : words[3];
  return word < plan.threshold;
}

} // namespace triax::cuda
