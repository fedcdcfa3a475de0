// SPDX-License-Identifier: Apache-2.0
// Products with cuBLASLt; the algorithm of each shape is selected once.
//
// Threads: the rank's main thread. Ownership: owns a handle, and descriptors of the shapes seen. Blocking: never; the
// first product of a shape calls cuBLASLt's heuristic, which prepare() does before the first step. Errors: Error with
// cuBLASLt's status.
//
// The selection does not use timing, and requires alignment to 16 bytes only, whatever the actual alignment. So a shape
// always has the same algorithm. Partial sums are added in f32 in a separate step. So results have the same bits.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <span>
#include <vector>

#include "product.hpp"

namespace triax::kernels_fused {

class LtProducts {
 public:
  LtProducts() = default;
  LtProducts(const LtProducts&) = delete;
  LtProducts& operator=(const LtProducts&) = delete;
  ~LtProducts();

  void start(bool tf32);
  bool started() const noexcept { return handle_ != nullptr; }
  /// Whether cuBLASLt has an algorithm; it does not have every epilogue for every type on every GPU.
  bool prepare(const ProductShape& shape);
  /// prepare() must have returned true for the shape.
  void run(const Product& product, std::span<std::byte> workspace, cudaStream_t stream);

 private:
  struct Plan {
    explicit Plan(const ProductShape& of) : shape(of) {}
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    ~Plan();

    ProductShape shape;
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    bool found = false;
  };
  const Plan* find(const ProductShape& shape) const;
  void describe(Plan& plan) const;
  void choose(Plan& plan) const;

  cublasLtHandle_t handle_ = nullptr;
  bool tf32_ = false;
  std::vector<std::unique_ptr<Plan>> plans_; // about a dozen per model
};

} // namespace triax::kernels_fused
