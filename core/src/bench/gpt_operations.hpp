// SPDX-License-Identifier: Apache-2.0
// The operations of a GPT block, the head and the optimizer as calls of one kernel set, at a model's shapes.
//
// Threads: one. Ownership: owns the arguments; the buffers belong to the KernelSide, which must outlive it. Blocking,
// errors: as KernelSide.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/kernel_side.hpp"

namespace triax::bench {

struct GptShapes {
  std::int64_t hidden = 256, heads = 4, sequence = 256, micro = 1, vocab = 1024;
  double dropout = 0.1;
};

struct KernelCase {
  std::string name; // "linear_fwd/qkv": the operation, and which one of the model
  OpCall call;
  std::vector<TensorView> outputs; // contiguous; also those that are read before they are written
};

/// Names in the order of a step, without a kernel set.
std::vector<std::string> gpt_operation_names();

/// Bytes of the buffers of these operations, without the set's scratch memory. A double, because shapes may be so large
/// that no integer holds it.
double buffer_bytes(const GptShapes& shapes, DType dtype, const std::vector<std::string>& names);

class GptOperations {
 public:
  /// Makes only the cases of `names`, which may be operations ("linear_fwd") or cases; empty: all.
  GptOperations(KernelSide& side, const GptShapes& shapes, DType dtype, const std::vector<std::string>& names);

  const std::vector<KernelCase>& cases() const { return cases_; }

 private:
  template <class Args>
  void add(const std::string& name, const Args& args, std::vector<TensorView> outputs);
  bool wants(const std::string& name) const;
  TensorView data(const Shape& shape) { return side_.noise(shape, dtype_); }
  TensorView single(const Shape& shape, double value = 0.01) { return side_.tensor(shape, value, DType::f32); }
  std::int64_t rows() const { return shapes_.sequence * shapes_.micro; }
  Shape stream() const { return {shapes_.sequence, shapes_.micro, shapes_.hidden}; }
  Drop drop();

  void linear(const std::string& name, std::int64_t in, std::int64_t out, Activation act);
  void linear_before_gelu(const std::string& name, std::int64_t in, std::int64_t out);
  void attention();
  void norms();
  void elementwise();
  void embedding();
  void cross_entropy();
  void optimizer();

  KernelSide& side_;
  const GptShapes shapes_;
  const DType dtype_;
  const std::vector<std::string> names_;
  std::vector<KernelCase> cases_;
  std::vector<std::shared_ptr<const void>> arguments_; // of the calls
  std::vector<AdamW> shards_;                          // argument of multi_adamw
};

} // namespace triax::bench
