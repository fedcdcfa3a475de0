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

/// Dropout arguments of a kernel: the fields of Drop, and the sizes of the view. threshold: 0 if nothing is dropped.
struct DropArguments {
  PhiloxKey key{};
  std::uint32_t site = 0, threshold = 0;
  float scale = 1;
  const std::int64_t* samples = nullptr; // running number of each sample of the microbatch
  std::int64_t batch = 1;                // number of samples
  std::int64_t head0 = 0, row0 = 0, column0 = 0, rows = 0, width = 0;
  bool scores = false; // [b, a, sq, sk]; else [rows, n]
  std::int64_t heads = 1, queries = 1, columns = 1;
};

/// The arguments without the sizes of a view.
inline DropArguments drop_arguments(const Drop& drop) {
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
/// The arguments of an operation.
inline DropArguments drop_arguments(const Dropout& args) {
  DropArguments out = drop_arguments(args.drop);
  out.scores = args.x.rank() == 4;
  out.columns = args.x.size(-1);
  if (out.scores) {
    out.heads = args.x.size(1);
    out.queries = args.x.size(2);
  }
  return out;
}

/// An element of a sample.
struct DropIndex {
  std::int64_t sample;  // in the microbatch
  std::int64_t element; // in the sample's global tensor
};

/// For a column of a row of the view; rows are numbered over all dimensions but the last.
TRIAX_HD inline DropIndex drop_index(const DropArguments& drop, std::int64_t row, std::int64_t column) {
  column += drop.column0;
  if (!drop.scores) return {row % drop.batch, (drop.row0 + row / drop.batch) * drop.width + column};
  const std::int64_t head = drop.head0 + row / drop.queries % drop.heads, query = drop.row0 + row % drop.queries;
  return {row / (drop.heads * drop.queries), (head * drop.rows + query) * drop.width + column};
}

/// For element `i` of the view, in row order.
TRIAX_HD inline DropIndex drop_index(const DropArguments& drop, std::int64_t i) {
  return drop_index(drop, i / drop.columns, i % drop.columns);
}

/// Whether element `i` of the view, in row order, is dropped.
TRIAX_HD inline bool dropped(const DropArguments& drop, std::int64_t i) {
  const DropIndex index = drop_index(drop, i);
  const auto element = static_cast<std::uint64_t>(index.element);
  const PhiloxBlock words =
      philox_at(drop.key, element, drop.site, static_cast<std::uint32_t>(drop.samples[index.sample]));
  const unsigned at = element % 4; // selected without indexing, so that the words stay in registers
  const std::uint32_t word = at == 0 ? words[0] : at == 1 ? words[1] : at == 2 ? words[2] : words[3];
  return word < drop.threshold;
}

} // namespace triax::cuda
