// SPDX-License-Identifier: Apache-2.0
// The CPU kernel set: products in tiles, and vectorised loops for the rest, on its own threads. It computes in
// f32; bf16 and f16 are storage types (upcast.hpp).
//
// Threads: called from the rank's main thread; each call runs on a thread pool and is complete when it returns.
// Ownership: owns its threads; memory is the caller's. Blocking: operations run inside the call, and poll the device's
// transports between parts. Errors: Error for missing step scalars, or from oneDNN.
// The shape alone determines how a sum is split, and partial sums are added in a fixed order: the number of threads
// does not change a bit. Operations do not allocate.
#pragma once

#include <algorithm>
#include <memory>

#include "cpu_gemm.hpp"
#include "loops.hpp"
#include "pool.hpp"
#include "triax/kernels.hpp"
#include "triax/plugin.hpp"
#include "upcast.hpp"

namespace triax::kernels_cpu {

/// Number of rows of a view seen as [rows, last dimension].
inline std::int64_t rows_of(const TensorView& view) {
  return view.size(-1) == 0 ? 0 : view.elements() / view.size(-1);
}

class CpuKernels final : public KernelSet {
 public:
  explicit CpuKernels(const PluginContext& context);
  CpuKernels(int threads, const Loops& loops) : threads_(threads), loops_(loops) {}

  int threads() const noexcept override { return threads_; }
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Refusals supports(const KernelRequest& request) const override;
  Refusals supports(const OpCall& call) const override;
  std::size_t scratch_bytes(const OpCall& call) const override;
  void start(Device& device) override;

 protected:
#define TRIAX_OP(Args, name) void do_##name(const Args& args, const OpContext& context) override;
  TRIAX_PRIMITIVES(TRIAX_OP)
  TRIAX_OP(LinearFwd, linear_fwd)
  TRIAX_OP(LinearBwdInput, linear_bwd_input)
  TRIAX_OP(BiasDropoutAdd, bias_dropout_add)
  TRIAX_OP(BiasDropoutAddNorm, bias_dropout_add_norm)
  TRIAX_OP(AttentionFwd, attention_fwd)
  TRIAX_OP(AttentionBwd, attention_bwd)
  TRIAX_OP(XentFused, xent_fused)
#undef TRIAX_OP
  void run(const OpCall& call, const OpContext& context) override;

 private:
  template <class Args>
  std::size_t scratch_of(const Args& args) const;
  std::size_t scratch_of_f32(const OpCall& call) const;
  template <class Args>
  void run_as(const Args& args, const OpContext& context);
  void run_linear(const LinearFwd& args, const OpContext& context);
  void run_norm(const BiasDropoutAddNorm& args, const OpContext& context);
  /// Converts between a 16-bit view and its contiguous f32 copy.
  void convert(const TensorView& to, const TensorView& from);

  std::size_t product_scratch(const Gemm& args) const;
  std::size_t product_scratch(const LinearFwd& args) const;
  /// A batch of products by the loops of the instruction set, or by oneDNN.
  void multiply(const Gemm& args, const OpContext& context, const Epilogue& epilogue);
  void multiply_packed(const Gemm& args, const OpContext& context, const Epilogue& epilogue);
  void multiply_by_library(const Gemm& args, const OpContext& context, const Epilogue& epilogue);
  void xent_row(const XentSums& args, std::int64_t r) const;
  void write_working(const TensorView& working, const float* master, std::int64_t begin, std::int64_t n) const;

  // About 64 KiB of f32: large enough to be worth handing to a thread, small enough for the caches.
  static constexpr std::int64_t kBlock = 16 * 1024;

  static std::int64_t blocks_of(std::int64_t elements) {
    return (elements + kBlock - 1) / kBlock;
  }

  /// Calls body(begin, n) for blocks of `elements`.
  template <class Body>
  void by_elements(std::int64_t elements, const Body& body) {
    pool_->run(blocks_of(elements),
               [&](std::int64_t block, int) { body(block * kBlock, std::min(kBlock, elements - block * kBlock)); });
  }
  /// Calls body(row) for `rows` rows of n elements.
  template <class Body>
  void by_rows(std::int64_t rows, std::int64_t n, const Body& body) {
    const std::int64_t block =
        std::clamp<std::int64_t>(kBlock / std::max<std::int64_t>(n, 1), 1, std::max<std::int64_t>(rows, 1));
    pool_->run((rows + block - 1) / block, [&](std::int64_t item, int) {
      const std::int64_t end = std::min(rows, (item + 1) * block);
      for (std::int64_t row = item * block; row < end; ++row) body(row);
    });
  }
  /// Calls body(column, n) for groups of kColumns columns: for sums over rows, where one thread adds a whole column.
  template <class Body>
  void by_columns(std::int64_t columns, const Body& body) {
    pool_->run((columns + kColumns - 1) / kColumns, [&](std::int64_t group, int) {
      body(group * kColumns, std::min(kColumns, columns - group * kColumns));
    });
  }

  int threads_;
  const Loops& loops_;
  std::unique_ptr<Pool> pool_;
};

/// The random numbers of a dropout: maps a row to its position in the stream.
class DropStream {
 public:
  explicit DropStream(const Drop& drop);
  bool drops() const { return drop_.p > 0; }
  /// Row r of a [rows, n] view: position r / b of sample r % b.
  DropRow row(std::int64_t r) const { return at(r % samples_, drop_.row0 + r / samples_, drop_.column0, 0); }
  /// Row `row`, from column `column`, of one head of the sample's global tensor.
  DropRow at(std::int64_t sample, std::int64_t row, std::int64_t column, std::int64_t head) const;

 private:
  const Drop& drop_;
  std::int64_t samples_;
  std::uint32_t threshold_;
  float scale_;
};

/// Number of leading keys, of `keys`, that query `query` of `sample` attends to.
std::int64_t seen_keys(const Mask& mask, std::int64_t sample, std::int64_t query, std::int64_t keys);

/// Bytes of scratch per thread in attention.
std::size_t attention_scratch(const AttentionFwd& args);
std::size_t attention_scratch(const AttentionBwd& args);

} // namespace triax::kernels_cpu
