// SPDX-License-Identifier: Apache-2.0
// Forward and backward of one microbatch through all layers of model-gpt, to time a kernel set at a model's shapes.
//
// Ownership: owns everything except the kernel set and its device. Blocking: run() computes.
#pragma once

#include <memory>
#include <vector>

#include "plugin/loader.hpp"
#include "triax/model.hpp"

namespace triax::bench {

struct GptSizes {
  std::int64_t layers = 6, hidden = 384, heads = 6, sequence = 256, vocab = 257, micro = 1;
  double dropout = 0.1;
};

class GptStep {
 public:
  GptStep(KernelSet& kernels, Device& device, const GptSizes& sizes);
  /// Returns the loss of the microbatch's samples, summed over their tokens.
  double run();
  /// FLOPs of a training step, forward and backward.
  double flops() const { return flops_; }

 private:
  struct LayerViews {
    std::unique_ptr<Layer> layer;
    std::vector<TensorView> params, grads, stash, in, out, dout, din;
  };
  TensorView tensor(DType dtype, const Shape& shape, double value);
  TensorView tokens(std::int64_t shift);
  void allocate(LayerViews& views);

  KernelSet& kernels_;
  Device& device_;
  GptSizes sizes_;
  Options options_;
  Layout layout_ = Layout::ptd(1, 1, 1);
  Groups groups_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Memory>> memory_;
  plugin::Instance<Model> model_;
  std::vector<LayerViews> layers_;
  TensorView hidden_, dhidden_, loss_, samples_; // of the last boundary
  std::vector<std::byte> scratch_;
  double flops_ = 0;
};

} // namespace triax::bench
