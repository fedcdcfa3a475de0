// SPDX-License-Identifier: Apache-2.0
// Bit equality of large operations with any number of threads, and of all operations at any alignment of a buffer.
#include <gtest/gtest.h>

#include <cstring>

#include "sets.hpp"

namespace triax::kernels_cpu {
namespace {

/// Runs the operations of a transformer block, at sizes of several tiles and blocks; returns all tensors.
class Block {
 public:
  explicit Block(CpuSet& set) : set_(set) {}

  std::vector<std::vector<float>> run() {
    const std::int64_t s = 130, b = 2, h = 192, a = 3, d = 64, rows = s * b;
    std::vector<std::int64_t> samples = {5, 9};
    const Drop drop{.p = 0.1f,
                    .key = philox_key(7, RandomPurpose::dropout),
                    .site = 17,
                    .samples = {samples.data(), DType::i64, {b}},
                    .rows = s,
                    .width = h};
    TensorView x = input({s, b, h}), weight = input({h}), bias = input({h});
    TensorView y = output({s, b, h}), mean = output({rows}), rstd = output({rows});
    set_.run(NormFwd{NormKind::layer, y, x, weight, bias, mean, rstd, 1e-5});
    TensorView qkv = output({s, b, 3 * h}), wqkv = input({3 * h, h}), bqkv = input({3 * h});
    set_.run(LinearFwd{.y = qkv, .x = y, .w = wqkv, .bias = bqkv});
    const auto part = [&](const TensorView& of, int index) {
      return TensorView(of.as<float>() + index * h, DType::f32, {s, b, a, d}, {b * 3 * h, 3 * h, d, 1});
    };
    TensorView o = output({s, b, a, d}), lse = output({b, a, s}), dqkv = output({s, b, 3 * h});
    const Mask causal{.kind = Mask::Kind::causal, .lengths = {}};
    Drop scores = drop;
    scores.width = s;
    set_.run(AttentionFwd{o, lse, part(qkv, 0), part(qkv, 1), part(qkv, 2), 0.125, causal, scores});
    TensorView dout = input({s, b, a, d});
    set_.run(AttentionBwd{part(dqkv, 0), part(dqkv, 1), part(dqkv, 2), dout, part(qkv, 0), part(qkv, 1), part(qkv, 2),
                          o, lse, 0.125, causal, scores});
    TensorView up = input({4 * h, h}), z = output({s, b, 4 * h}), act = output({s, b, 4 * h}), bup = input({4 * h});
    set_.run(LinearFwd{act, z, y, up, bup, Activation::gelu_tanh});
    set_.run(ActBwd{Activation::gelu_tanh, act, act, z});
    TensorView dup = input({4 * h, h}), dbup = input({4 * h}), dy = output({s, b, h});
    set_.run(LinearBwdWeight{dup, dbup, act, y});
    set_.run(LinearBwdInput{dy, act, up});
    TensorView down = input({h, 4 * h}), dz = output({s, b, 4 * h});
    set_.run(LinearBwdInput{dz, dy, down, z, Activation::gelu_tanh});
    set_.run(BiasDropoutAdd{y, dy, bias, x, drop});
    TensorView dw = input({h}), db = input({h}), dx = output({s, b, h});
    set_.run(NormBwdWeight{NormKind::layer, dw, db, dy, x, mean, rstd});
    set_.run(NormBwdInput{NormKind::layer, dx, dy, x, weight, mean, rstd, y});
    TensorView squares = output({2});
    set_.run(SumSquares{{squares.data(), DType::f64, {1}}, dup.flat()});
    return std::move(tensors_);
  }

 private:
  TensorView input(const Shape& shape) {
    tensors_.push_back(numbers(shape.elements(), static_cast<std::uint32_t>(tensors_.size())));
    return view(tensors_.back(), shape);
  }
  TensorView output(const Shape& shape) {
    tensors_.emplace_back(static_cast<std::size_t>(shape.elements()));
    return view(tensors_.back(), shape);
  }
  CpuSet& set_;
  std::vector<std::vector<float>> tensors_;
};

TEST(Bits, OfABlockDoNotDependOnThreads) {
  CpuSet alone(1);
  const auto first = Block(alone).run();
  for (const int threads : {2, 3, 4}) {
    CpuSet many(threads);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto again = Block(many).run();
      ASSERT_EQ(first.size(), again.size());
      for (std::size_t i = 0; i < first.size(); ++i) {
        EXPECT_EQ(std::memcmp(first[i].data(), again[i].data(), first[i].size() * sizeof(float)), 0)
            << "tensor " << i << " with " << threads << " threads";
      }
    }
  }
}

/// The same operation with each view shifted by `shift` floats, so that elements move in registers and cache lines.
TEST(Bits, DoNotDependOnWhereABufferLies) {
  const std::int64_t rows = 37, n = 83;
  CpuSet set(2);
  std::vector<std::int64_t> samples = {4};
  std::vector<std::vector<float>> first;
  for (const std::int64_t shift : {0, 1, 3, 8, 13, 31}) {
    std::vector<std::vector<float>> memory;
    const auto place = [&](std::int64_t count, std::uint32_t seed) {
      const std::vector<float> values = numbers(count, seed, -3, 3);
      std::vector<float>& buffer = memory.emplace_back(static_cast<std::size_t>(count + shift));
      std::copy(values.begin(), values.end(), buffer.begin() + shift);
      return TensorView(buffer.data() + shift, DType::f32, {rows, count / rows});
    };
    memory.reserve(32);
    const TensorView x = place(rows * n, 1), dy = place(rows * n, 2), y = place(rows * n, 3);
    const TensorView weight = TensorView(place(rows * n, 4).data(), DType::f32, {n});
    const TensorView mean = TensorView(place(rows * n, 5).data(), DType::f32, {rows});
    const TensorView rstd = TensorView(place(rows * n, 6).data(), DType::f32, {rows});
    const Drop drop{.p = 0.2f, .site = 3, .samples = {samples.data(), DType::i64, {1}}, .rows = rows, .width = n};
    set.run(NormFwd{NormKind::layer, y, x, weight, weight, mean, rstd, 1e-5});
    set.run(ActFwd{Activation::gelu_tanh, place(rows * n, 7), x});
    set.run(ActBwd{Activation::gelu_tanh, place(rows * n, 8), dy, x});
    set.run(BiasDropoutAdd{place(rows * n, 9), x, weight, dy, drop});
    set.run(NormBwdInput{NormKind::layer, place(rows * n, 10), dy, x, weight, mean, rstd, {}});
    set.run(BiasBwd{TensorView(place(rows * n, 11).data(), DType::f32, {n}), dy});
    set.run(SoftmaxFwd{place(rows * n, 12).reshape({1, 1, rows, n}), x.reshape({1, 1, rows, n}), 0.5, {}, {}});
    StepScalars scalars{.lr = 0.1f, .clip = 0.3f, .step = 2};
    const TensorView second = place(rows * n, 13);
    set.run(Add{second, second, second});
    set.run(AdamW{x.flat(),
                  dy.flat(),
                  place(rows * n, 14).flat(),
                  place(rows * n, 15).flat(),
                  {},
                  0.9,
                  0.95,
                  1e-8,
                  0.1,
                  &scalars});
    set.run(Gemm{.d = TensorView(place(rows * n, 16).data(), DType::f32, {rows, rows}),
                 .a = dy,
                 .b = second,
                 .transpose_b = true});
    std::vector<std::vector<float>> results;
    for (const auto& buffer : memory) results.emplace_back(buffer.begin() + shift, buffer.end());
    if (shift == 0) first = results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(std::memcmp(first[i].data(), results[i].data(), first[i].size() * sizeof(float)), 0)
          << "buffer " << i << " moved by " << shift << " floats";
    }
  }
}

/// An element's bits do not depend on its position in a block or on the block's length: bucket offsets vary.
TEST(Bits, OfAnElementDoNotDependOnItsNeighbours) {
  CpuSet set(2);
  const std::int64_t n = 20011;
  std::vector<float> x = numbers(n, 1, -4, 4), whole(static_cast<std::size_t>(n));
  set.run(ActFwd{Activation::gelu_tanh, view(whole, {n}), view(x, {n})});
  for (const std::int64_t begin : {1, 5, 16, 4000}) {
    for (const std::int64_t count : {1, 7, 15, 16, 17, 333, 16000}) {
      std::vector<float> part(static_cast<std::size_t>(count));
      set.run(ActFwd{Activation::gelu_tanh, view(part, {count}), TensorView(x.data() + begin, DType::f32, {count})});
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + begin, part.size() * sizeof(float)), 0)
          << begin << " " << count;
    }
  }
}

} // namespace
} // namespace triax::kernels_cpu
