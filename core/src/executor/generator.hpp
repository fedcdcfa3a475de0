// SPDX-License-Identifier: Apache-2.0
// Extends sequences on one rank: appends tokens to the cache, and makes their logits.
//
// Threads: the rank's main thread. Ownership: borrows everything; parts must outlive it. Blocking: append() computes
// and waits; every wait runs the progress loop, and checks the rank's abort flag and the deadline. Errors: Error
// located at rows and action. After an error, only the end of the object is allowed.
//
// All ranks of a layout must make the same calls with the same tokens; ranks without an embedding use their number
// only. The last stage has the logits, on each of its tensor ranks with the same bits. From the second append of a size
// on, operator new is not called, except by libraries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/generate_state.hpp"
#include "executor/transfer_streams.hpp"
#include "triax/lazy_load_guard.hpp"

namespace triax::executor {

struct GeneratorParts {
  Device& device;
  Stream& stream;
  KernelSet& kernels;
  const Groups& groups;
  GenerateState& state; // allocated and loaded
  schedule::Assumptions assumptions;
  double timeout_s = 600;
};

class Generator {
 public:
  explicit Generator(const GeneratorParts& parts);

  /// Appends n tokens, at most max_rows, to all sequences: `tokens` is host memory, i32 [n, m*b]; column k*b + i is
  /// sample i of microbatch k. Throws Error if a token is not in the vocabulary, or the cache is full.
  void append(const TensorView& tokens);
  /// The logits of the tokens of the last append(): host memory [n, b, V]. Only on ranks of the last stage.
  TensorView logits(int microbatch) const;
  /// All sequences begin anew, without tokens.
  void restart();
  std::int64_t length() const { return length_; } // tokens of each sequence

 private:
  void check(const TensorView& tokens) const;
  void call(const Rows& rows, const TensorView& tokens, std::int64_t first);
  void stage_tokens(const TensorView& tokens);
  void run(ActionId id, const Rows& rows, std::int64_t first);
  void forward(ActionId id, const Rows& rows, std::int64_t first);
  Deadline deadline() const { return deadline_in(parts_.timeout_s); }

  GeneratorParts parts_;
  TransferStreams transfers_;
  LazyLoadGuard* lazy_load_guard_ = nullptr; // set if the device has this interface
  std::vector<bool> ran_;                    // by call size
  std::int64_t length_ = 0, appended_ = 0;
};

} // namespace triax::executor
