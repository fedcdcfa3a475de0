// SPDX-License-Identifier: Apache-2.0
#include "tiny_layer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "support/ranks.hpp"
#include "triax/random.hpp"

namespace triax::test {

namespace {

constexpr std::int64_t kS = TinyCase::kSequence, kB = TinyCase::kMicro, kH = TinyCase::kHidden, kI = TinyCase::kInner;

/// x = embedding(tokens); n = norm(x); z = n Wu^T + bu; a = gelu(z); y = a Wd^T + bd; loss = cross_entropy(y We^T,
/// targets). Gated: z = [n Wg^T, n Wu^T]; a = silu(z's first half) * its second.
class TinyRank {
 public:
  TinyRank(Rank& rank, const TinyCase& tiny)
      : rank_(rank),
        tiny_(tiny),
        context_{rank.layout(),
                 rank.index(),
                 kB,
                 tiny.vocab,
                 tiny.dtype,
                 5,
                 tiny.sequence_parallel && tiny.tensor > 1,
                 kS,
                 kS},
        embedding_(parts_, context_, "embedding", kH, weight()),
        norm_(parts_, context_, "norm", {.kind = tiny.gated ? NormKind::rms : NormKind::layer, .width = kH}),
        up_(parts_, context_, "up", kH, tiny.gated ? 2 * kI : kI,
            {.init = weight(), .bias = !tiny.gated, .act = act_, .parts = tiny.gated ? 2 : 1}),
        down_(parts_, context_, "down", kI, kH, {.init = weight(), .bias = !tiny.gated}),
        head_(parts_, context_, "head", kH, weight()),
        kernels_(rank.kernels("kernels-reference")),
        groups_(rank.join_axes()) {
    for (const ParamSpec& spec : parts_.params) {
      params_.push_back(drawn(spec));
      grads_.push_back(rank.tensor(tiny.dtype, spec.local));
    }
    for (const StashSpec& spec : parts_.stash) stash_.push_back(rank.tensor(spec.dtype, spec.shape));
    for (std::int64_t i = 0; i < kS * kB; ++i) {
      tokens_.as<std::int32_t>()[i] = static_cast<std::int32_t>(7 * i % tiny.vocab);
      targets_.as<std::int32_t>()[i] = static_cast<std::int32_t>((5 * i + 3) % tiny.vocab);
    }
  }

  void run(TinyResult& result, std::mutex& mutex) {
    forward();
    backward();
    rank_.stream().ready();
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < stash_.size(); ++i)
      if (parts_.stash[i].name == "logits") result.logits.push_back(stash_[i].shape());
    result.loss_bytes += loss_bytes_;
    agree("loss", result.loss, {loss_.as<double>(), loss_.as<double>() + kB});
    put_rows(result.hidden, numbers(y_));
    agree("all-reduces", result.all_reduces, all_reduces_);
    for (std::size_t i = 0; i < grads_.size(); ++i) put(result.gradients[parts_.params[i].name], i);
  }

 private:
  static Init weight() { return {Init::Kind::normal, 1}; }

  /// All ranks must have the same bits.
  template <class Values>
  static void agree(const char* name, Values& result, const Values& mine) {
    if (result.empty()) result = mine;
    EXPECT_EQ(result, mine) << name;
  }

  /// With sequence parallelism this rank's rows, else all.
  void put_rows(std::vector<double>& hidden, const std::vector<double>& mine) {
    if (!context_.sequence_parallel) return agree("hidden", hidden, mine);
    hidden.resize(kS * kB * kH);
    std::ranges::copy(mine, hidden.begin() + context_.own({0, kS}).begin * kB * kH);
  }

  void forward() {
    const LayerCall call = this->call();
    counted("embedding", [&] { embedding_.forward(call, params_, tokens_, x_, stash_); });
    counted("norm", [&] { norm_.forward(call, params_, x_, n_, stash_); });
    counted("up", [&] { up_.forward(call, params_, n_, a_, z_, stash_); });
    counted("down", [&] { down_.forward(call, params_, a_, y_, stash_); });
    if (down_.bias() >= 0) kernels_.bias_add({y_, y_, params_[static_cast<std::size_t>(down_.bias())]}, call.op());
    const std::uint64_t before = bytes_out();
    counted("head", [&] { head_.forward(call, params_, y_, targets_, loss_, stash_); });
    loss_bytes_ = bytes_out() - before;
  }

  void backward() {
    const LayerCall call = this->call();
    counted("head backward", [&] { head_.backward_input(call, params_, targets_, dy_, stash_); });
    counted("head weight", [&] { head_.backward_weight(call, y_, stash_, grads_); });
    counted("down backward",
            [&] { down_.backward_input(call, params_, dy_, dz_, stash_, act_, z_); }); // to the activation's input
    counted("down weight", [&] { down_.backward_weight(call, a_, dy_, stash_, grads_); });
    counted("up backward", [&] { up_.backward_input(call, params_, n_, dz_, dx_, stash_); });
    counted("up weight", [&] { up_.backward_weight(call, n_, dz_, stash_, grads_); });
    counted("norm backward", [&] { norm_.backward(call, params_, x_, dx_, {}, dx_, stash_, grads_); });
    counted("embedding backward", [&] { embedding_.backward_input(call, dx_, stash_); });
    counted("embedding weight", [&] { embedding_.backward_weight(call, tokens_, dx_, stash_, grads_); });
  }

  LayerCall call() {
    LayerCall call{rank_.device(), kernels_, rank_.stream(), scratch_, groups_, {}};
    call.loss_gradient = 1.0 / (kS * kB);
    call.rows = {0, kS};
    return call;
  }

  template <class Body>
  void counted(const char* name, Body body) {
    const Communicator* tensor = groups_.find("tensor");
    const std::uint64_t before = tensor ? tensor->stats().ops : 0;
    body();
    all_reduces_[name] = tensor ? tensor->stats().ops - before : 0;
  }
  std::uint64_t bytes_out() const {
    rank_.stream().ready();
    const Communicator* tensor = groups_.find("tensor");
    return tensor ? tensor->stats().bytes_out : 0;
  }

  /// Calls body(index in this rank's part, index in the whole or -1 for padding) for each element of the part.
  template <class Body>
  static void for_elements(const ParamSpec& spec, Body body) {
    for (std::int64_t i = 0; i < spec.local.elements(); ++i) {
      std::int64_t rest = i, whole = 0, stride = 1;
      bool padding = false;
      for (int dim = spec.local.rank() - 1; dim >= 0; --dim) {
        const Cut* cut = spec.cut_along(dim);
        const std::int64_t index = rest % spec.local[dim] + (cut ? cut->begin : 0);
        padding |= cut && index >= cut->end;
        rest /= spec.local[dim];
        whole += index * stride;
        stride *= spec.global[dim];
      }
      body(i, padding ? -1 : whole);
    }
  }

  TensorView drawn(const ParamSpec& spec) {
    const PhiloxKey key = philox_key(3, RandomPurpose::test);
    std::vector<double> values(static_cast<std::size_t>(spec.local.elements()),
                               std::numeric_limits<double>::quiet_NaN());
    for_elements(spec, [&](std::int64_t place, std::int64_t whole) {
      if (whole < 0) return;
      const auto element = static_cast<std::uint64_t>(whole);
      const std::uint32_t word = philox_at(key, element, spec.site, 0)[element % 4];
      values[static_cast<std::size_t>(place)] = uniform(word) - 0.5;
      if (spec.name == tiny_.nudged && element == tiny_.nudged_element) {
        values[static_cast<std::size_t>(place)] += tiny_.step;
      }
    });
    const TensorView view = rank_.tensor(tiny_.dtype, spec.local);
    rank_.device().convert(view, rank_.tensor(DType::f64, spec.local, values), rank_.stream());
    return view;
  }

  std::vector<double> numbers(const TensorView& view) {
    const TensorView wide = rank_.tensor(DType::f64, view.shape());
    rank_.device().convert(wide, view, rank_.stream());
    return {wide.as<double>(), wide.as<double>() + wide.elements()};
  }

  /// Copies this rank's gradient into the whole. A replicated one must have the same bits on all ranks.
  void put(std::vector<double>& whole, std::size_t index) {
    const ParamSpec& spec = parts_.params[index];
    const std::vector<double> part = numbers(grads_[index]);
    const bool first = whole.empty();
    whole.resize(static_cast<std::size_t>(spec.global.elements()));
    for_elements(spec, [&](std::int64_t place, std::int64_t target) {
      const double value = part[static_cast<std::size_t>(place)];
      if (target < 0) {
        EXPECT_EQ(value, 0) << spec.name << ": padding got a gradient";
        return;
      }
      double& there = whole[static_cast<std::size_t>(target)];
      const bool adds = !spec.partial.empty();
      if (spec.cuts.empty() && !first && !adds) {
        EXPECT_EQ(value, there) << spec.name;
      }
      there = adds ? there + value : value;
    });
  }

  TensorView floating(const Shape& shape) { return rank_.tensor(tiny_.dtype, shape); }

  Rank& rank_;
  const TinyCase& tiny_;
  LayerContext context_;
  LayerParts parts_;
  Activation act_ = tiny_.gated ? Activation::silu_mul : Activation::gelu_tanh;
  VocabEmbedding embedding_;
  Norm norm_;
  ColumnLinear up_;
  RowLinear down_;
  VocabCrossEntropy head_;
  KernelSet& kernels_;
  Groups groups_;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(1 << 20);
  std::vector<TensorView> params_, grads_, stash_;
  const std::int64_t inner_ = kI / tiny_.tensor, of_up_ = tiny_.gated ? 2 * inner_ : inner_;
  TensorView tokens_ = rank_.tensor(DType::i32, {kS, kB}), targets_ = rank_.tensor(DType::i32, {kS, kB});
  const std::int64_t rows_ = context_.own_rows();
  TensorView x_ = floating({rows_, kB, kH}), n_ = floating({rows_, kB, kH}), dx_ = floating({rows_, kB, kH});
  TensorView z_ = floating({kS, kB, of_up_}), a_ = floating({kS, kB, inner_}), dz_ = floating({kS, kB, of_up_});
  TensorView y_ = floating({rows_, kB, kH}), dy_ = floating({rows_, kB, kH});
  TensorView loss_ = rank_.tensor(DType::f64, {kB});
  std::map<std::string, std::uint64_t> all_reduces_;
  std::uint64_t loss_bytes_ = 0;
};

} // namespace

TinyResult run_tiny(const TinyCase& tiny) {
  TinyResult result;
  std::mutex mutex;
  run_ranks(tiny.tensor, [&](Rank& rank) { TinyRank(rank, tiny).run(result, mutex); });
  return result;
}

} // namespace triax::test
