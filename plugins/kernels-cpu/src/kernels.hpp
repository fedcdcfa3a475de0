// The CPU kernel set: oneDNN products in tiles, vectorised loops for the rest, over threads of its own. f32, and bf16
// and f16 as types of storage (widen.hpp).
//
// Threads: used by the rank's main thread; each call is shared out over a pool and is over when it returns. Ownership:
// holds its threads; memory comes in as views. Blocking: operations run in the call; between their parts the device's
// transports are polled. Errors: Error for a step without its scalars, or from oneDNN.
// Work is cut by the shapes alone, and sums never cross a cut other than in a fixed order: the number of threads
// changes no bit. No operation allocates.
#pragma once

#include <algorithm>
#include <memory>

#include "gemm.hpp"
#include "loops.hpp"
#include "pool.hpp"
#include "triax/kernels.hpp"
#include "triax/plugin.hpp"
#include "widen.hpp"

namespace triax::cpu {

/// Rows of a view seen as [rows, last].
inline std::int64_t rows_of(const TensorView& view) {
  return view.size(-1) == 0 ? 0 : view.elements() / view.size(-1);
}

class CpuKernels final : public KernelSet {
 public:
  explicit CpuKernels(const PluginContext& context);
  CpuKernels(int threads, const Loops& loops) : threads_(threads), loops_(loops) {}

  int threads() const noexcept { return threads_; }
  DeviceKind device_kind() const noexcept override { return DeviceKind::host; }
  Support supports(const KernelRequest& request) const override;
  Support supports(const OpCall& call) const override;
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
  /// Between a view and the contiguous one that stands for it.
  void convert(const TensorView& to, const TensorView& from);

  /// The product on packed copies of a and b, where that is worth it; they lie at the front of the scratch.
  Product packed(const Product& product, const OpContext& context);
  template <class Body>
  void multiply_rows(const Gemm& args, const OpContext& context, const Body& body);
  void xent_row(const XentSums& args, std::int64_t r) const;
  void write_working(const TensorView& working, const float* master, std::int64_t begin, std::int64_t n) const;

  // About 64 KiB of a view: large enough to be worth a hand-over between threads, small enough for the caches.
  static constexpr std::int64_t kBlock = 16 * 1024;

  static std::int64_t blocks_of(std::int64_t elements) {
    return (elements + kBlock - 1) / kBlock;
  }

  /// body(begin, n) over blocks of `elements`.
  template <class Body>
  void by_elements(std::int64_t elements, const Body& body) {
    pool_->run(blocks_of(elements),
               [&](std::int64_t block, int) { body(block * kBlock, std::min(kBlock, elements - block * kBlock)); });
  }
  /// body(row) over `rows` rows of n elements.
  template <class Body>
  void by_rows(std::int64_t rows, std::int64_t n, const Body& body) {
    const std::int64_t block =
        std::clamp<std::int64_t>(kBlock / std::max<std::int64_t>(n, 1), 1, std::max<std::int64_t>(rows, 1));
    pool_->run((rows + block - 1) / block, [&](std::int64_t item, int) {
      const std::int64_t end = std::min(rows, (item + 1) * block);
      for (std::int64_t row = item * block; row < end; ++row) body(row);
    });
  }
  /// body(column, n) over groups of kColumns of n columns: for sums over rows, each by one thread.
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

/// The random stream of a drop; rows are found from it.
class DropStream {
 public:
  explicit DropStream(const Drop& drop);
  bool drops() const { return drop_.p > 0; }
  /// Row r of a [rows, n] view: (position r / b, sample r % b).
  DropRow row(std::int64_t r) const { return at(r % samples_, drop_.row0 + r / samples_, drop_.column0, 0); }
  /// Row `row`, from `column` on, of one head of the sample's global tensor.
  DropRow at(std::int64_t sample, std::int64_t row, std::int64_t column, std::int64_t head) const;

 private:
  const Drop& drop_;
  std::int64_t samples_;
  std::uint32_t threshold_;
  float scale_;
};

/// How many keys, from the first on, query `query` of `sample` sees.
std::int64_t seen_keys(const Mask& mask, std::int64_t sample, std::int64_t query, std::int64_t keys);

/// Scratch for the packed copies of one product, in bytes.
std::size_t packing_scratch(const Gemm& args);
std::size_t packing_scratch(const LinearFwd& args);
/// Scratch of one thread in attention, in bytes.
std::size_t attention_scratch(const AttentionFwd& args);
std::size_t attention_scratch(const AttentionBwd& args);

} // namespace triax::cpu
