// SPDX-License-Identifier: Apache-2.0
// Cost of an operation on a device: seconds and kernels of a call, from its shapes and types alone.
//
// Threads: read-only after construction. Ownership: borrows the device; it must outlive the object.
//
// A matrix product is divided into tiles: with the fastest tile, it takes max(1, tiles / sms) times the
// time of a tile. Every other operation is bound by memory: the bytes that the training program reads and writes for
// it, which depend on what that fuses (code_traits.hpp). docs/planning.md lists the formulas.
#pragma once

#include <cstdint>

#include "cost/cluster.hpp"
#include "cost/code_traits.hpp"
#include "triax/kernels.hpp"

namespace triax::cost {

struct OperationTime {
  double seconds = 0; // on the device
  int kernels = 0;    // that the host launches
  OperationTime& operator+=(const OperationTime& other) {
    seconds += other.seconds;
    kernels += other.kernels;
    return *this;
  }
  friend OperationTime operator+(OperationTime one, const OperationTime& other) { return one += other; }
};

/// `batch` products of [m, k] by [k, n], with the bytes of an element.
struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::size_t element_bytes = 2;
};

class OperationCost {
 public:
  OperationCost(const DeviceCosts& device, const CodeTraits& code) : device_(device), code_(code) {}

  OperationTime of(const OpCall& call) const;
  OperationTime of(const Product& product) const;
  /// The time of a kernel that reads and writes `bytes` in all.
  OperationTime pass(double bytes) const;

 private:
  double tiles_s(const Product& product) const;
  double tiled_product_s(const Product& product, std::int64_t head) const;
  OperationTime score_pass(double bytes) const;
  OperationTime head_product(Product product, std::int64_t head) const;
  OperationTime accumulation(const TensorView& gradient) const;
  OperationTime attention_core(const TensorView& q, const TensorView& k, bool drops) const;

  OperationTime of(const Gemm& x) const;
  OperationTime of(const LinearFwd& x) const;
  OperationTime of(const LinearBwdInput& x) const;
  OperationTime of(const LinearBwdWeight& x) const;
  OperationTime of(const BiasDropoutAdd& x) const;
  OperationTime of(const BiasDropoutAddNorm& x) const;
  OperationTime of(const NormBwdInput& x) const;
  OperationTime of(const Dropout& x) const;
  OperationTime of(const AttentionFwd& x) const;
  OperationTime of(const AttentionBwd& x) const;

  const DeviceCosts& device_;
  const CodeTraits code_;
};

} // namespace triax::cost
