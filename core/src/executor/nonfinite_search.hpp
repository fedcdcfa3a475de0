// SPDX-License-Identifier: Apache-2.0
// Finds where values that are not finite first appear: a step is computed again, and the host looks at what each layer
// writes. Slow, and only for the report of a step that failed.
//
// Threads: the rank's main thread. Ownership: owns a block of host memory; borrows device and stream. Blocking:
// inspect() waits for the stream. Errors: Error of the wait.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "schedule/program.hpp"
#include "triax/device.hpp"
#include "triax/model.hpp"

namespace triax::executor {

/// The tensors that a layer has written in an action.
struct LayerResults {
  int number = 0; // of the layer in the model
  const Layer& layer;
  schedule::Kind kind = schedule::Kind::forward;
  int microbatch = 0;     // of this rank
  Views results;          // F: outputs; B and I: gradients of the inputs; W: none
  Views weights;          // that the layer reads
  Views weight_gradients; // sums over the microbatches so far
};

class NonfiniteSearch {
 public:
  /// `layers`: of the whole model.
  NonfiniteSearch(Device& device, Stream& stream, int layers);

  void inspect(const LayerResults& of);

  /// The position of the first layer with such a value in the order of a step: forward from the first layer to the
  /// last, then backward. kNothing: all values are finite.
  int order() const { return order_; }
  /// Whether a weight of that layer has such a value on this rank.
  bool is_in_weights() const { return is_in_weights_; }
  /// "the output of block 3 in microbatch 0 (5 of 64 values); block 3/mlp.up.weight has 1 such value"
  const std::string& text() const { return text_; }

  static constexpr int kNothing = std::numeric_limits<int>::max();

 private:
  std::int64_t count(const TensorView& values);
  std::string in_weights(const LayerResults& of);
  void find_in_results(const LayerResults& of, int order, const char* what);
  void find_in_gradients(const LayerResults& of, int order);

  Device& device_;
  Stream& stream_;
  const int layers_;
  const std::unique_ptr<Memory> block_; // for downloads
  int order_ = kNothing;
  bool is_in_weights_ = false;
  std::string text_;
};

} // namespace triax::executor
