// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt, each shape's algorithm chosen once.
//
// Threads: the rank's main thread. Ownership: owns a handle, and descriptions of the shapes seen. Blocking: never; the
// first product of a shape asks cuBLASLt's heuristic, which prepare() does before the first step. Errors: Error with
// what cuBLASLt says.
// Never by timing, and for memory aligned to 16 bytes wherever it lies: the same shape has the same algorithm, and
// what it adds in parts it adds in f32 in a separate step, so the same bits.
#pragma once

#include <cublasLt.h>

#include <deque>
#include <span>

#include "product.hpp"

namespace triax::fused {

class LtProducts {
 public:
  LtProducts() = default;
  LtProducts(const LtProducts&) = delete;
  LtProducts& operator=(const LtProducts&) = delete;
  ~LtProducts();

  void start(bool tf32);
  bool started() const noexcept { return handle_ != nullptr; }
  /// Whether there is an algorithm; of cuBLASLt's epilogues not every one has one in every type on every GPU.
  bool prepare(const ProductShape& shape);
  /// Of a shape that prepare() has said yes to.
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
  std::deque<Plan> plans_; // a model has a dozen
};

} // namespace triax::fused
