// SPDX-License-Identifier: Apache-2.0
// The default of attention: compared with the formula, and its gradients with central differences.
#include "kernels/kit.hpp"

namespace triax::test {
namespace {

struct Sizes {
  std::int64_t sq, sk, b, a, a_kv, d;
  Mask mask{};
  float p = 0;
  bool lengths = false;
};

const Sizes kSizes[] = {
    {3, 3, 1, 1, 1, 2, {Mask::Kind::causal, 0, 0, {}}},
    {4, 4, 2, 2, 2, 3, {Mask::Kind::causal, 0, 0, {}}, 0.3f},
    {3, 5, 1, 4, 2, 3, {Mask::Kind::causal, 2, 0, {}}},
    {5, 3, 2, 6, 2, 2, {Mask::Kind::causal, 1, 2, {}}, 0.4f}, // query 0 sees no key
    {3, 4, 2, 3, 1, 3, {}, 0.2f, true},
    {2, 7, 1, 2, 2, 5, {}},
};

/// One problem: its tensors, and the constant parts of the argument structs.
struct Problem {
  explicit Problem(const Sizes& sizes)
      : s(sizes),
        q(random({s.sq, s.b, s.a, s.d}, 1, -2, 2)),
        k(random({s.sk, s.b, s.a_kv, s.d}, 2, -2, 2)),
        v(random({s.sk, s.b, s.a_kv, s.d}, 3)),
        c(random({s.sq, s.b, s.a, s.d}, 4)) {
    mask.lengths = s.lengths ? TensorView(lengths) : TensorView{};
    drop.samples = samples;
  }
  AttentionFwd forward() { return {o, lse, q, k, v, 0.6, mask, drop}; }

  Sizes s;
  Array q, k, v, c;
  Array o = unwritten({s.sq, s.b, s.a, s.d}), lse = unwritten({s.b, s.a, s.sq});
  Ints lengths{{s.b}, std::vector<std::int32_t>(static_cast<std::size_t>(s.b), 3)};
  Longs samples{{s.b}, 11};
  Mask mask = s.mask;
  Drop drop{.p = s.p, .key = philox_key(2, RandomPurpose::dropout), .site = 20, .head0 = 1, .rows = 9, .width = 10};
};

/// Output of one query, by the definition.
std::vector<double> direct(const Problem& p, std::int64_t q, std::int64_t b, std::int64_t a) {
  const Sizes& s = p.s;
  const std::int64_t a_kv = a / (s.a / s.a_kv);
  const auto key = [&](const Array& x, std::int64_t k, std::int64_t i) {
    return x[((k * s.b + b) * s.a_kv + a_kv) * s.d + i];
  };
  std::vector<double> weight(static_cast<std::size_t>(s.sk), 0.0), out(static_cast<std::size_t>(s.d), 0.0);
  double sum = 0;
  for (std::int64_t k = 0; k < s.sk; ++k) {
    const std::int64_t at = p.mask.k0 + k;
    if (p.mask.kind == Mask::Kind::causal && at > p.mask.q0 + q) continue;
    if (s.lengths && at >= p.lengths[b]) continue;
    double score = 0;
    for (std::int64_t i = 0; i < s.d; ++i) score += p.q[((q * s.b + b) * s.a + a) * s.d + i] * key(p.k, k, i);
    weight[static_cast<std::size_t>(k)] = std::exp(0.6 * score);
    sum += std::exp(0.6 * score);
  }
  if (sum == 0) return out;
  for (std::int64_t k = 0; k < s.sk; ++k) {
    const std::int64_t e = ((p.drop.head0 + a) * p.drop.rows + p.mask.q0 + q) * p.drop.width + p.mask.k0 + k;
    const std::uint32_t word = philox_at(p.drop.key, static_cast<std::uint64_t>(e), p.drop.site,
                                         static_cast<std::uint32_t>(p.samples[b]))[static_cast<std::size_t>(e % 4)];
    if (p.s.p > 0 && word < drop_threshold(s.p)) continue;
    for (std::int64_t i = 0; i < s.d; ++i) {
      out[static_cast<std::size_t>(i)] +=
          weight[static_cast<std::size_t>(k)] / sum / (1 - static_cast<double>(s.p)) * key(p.v, k, i);
    }
  }
  return out;
}

using Attention = FormulasTest;

TEST_F(Attention, IsItsFormula) {
  for (const Sizes& sizes : kSizes) {
    Problem p(sizes);
    run(p.forward());
    for (std::int64_t q = 0; q < sizes.sq; ++q) {
      for (std::int64_t b = 0; b < sizes.b; ++b) {
        for (std::int64_t a = 0; a < sizes.a; ++a) {
          const std::vector<double> want = direct(p, q, b, a);
          for (std::int64_t i = 0; i < sizes.d; ++i) {
            ASSERT_NEAR(p.o[((q * sizes.b + b) * sizes.a + a) * sizes.d + i], want[static_cast<std::size_t>(i)], 1e-13);
          }
        }
      }
    }
  }
}

TEST_F(Attention, Gradients) {
  for (const Sizes& sizes : kSizes) {
    Problem p(sizes);
    const auto loss = [&] {
      run(p.forward());
      return dot(p.c, p.o);
    };
    loss();
    Array dq = unwritten(p.q.shape), dk = unwritten(p.k.shape), dv = unwritten(p.v.shape);
    run(AttentionBwd{dq, dk, dv, p.c, p.q, p.k, p.v, p.o, p.lse, 0.6, p.mask, p.drop});
    check_gradient("attention by q", p.q, dq, loss);
    check_gradient("attention by k", p.k, dk, loss);
    check_gradient("attention by v", p.v, dv, loss);
  }
}

// q, k and v as slices of one [s, b, a, 3d] tensor, as models store them.
TEST_F(Attention, TakesSlicesOfOneTensor) {
  Problem p({5, 5, 2, 3, 3, 4, {Mask::Kind::causal, 0, 0, {}}, 0.2f});
  Array qkv = unwritten({5, 2, 3, 12}), gradients = unwritten({5, 2, 3, 12});
  const auto part = [](Array& x, std::int64_t i) { return TensorView(x).slice(3, 4 * i, 4 * i + 4); };
  for (std::int64_t row = 0; row < 30; ++row) {
    for (std::int64_t i = 0; i < 4; ++i) {
      qkv[row * 12 + i] = p.q[row * 4 + i];
      qkv[row * 12 + 4 + i] = p.k[row * 4 + i];
      qkv[row * 12 + 8 + i] = p.v[row * 4 + i];
    }
  }
  run(p.forward());
  Array o = unwritten({5, 2, 3, 4}), lse = unwritten({2, 3, 5});
  run(AttentionFwd{o, lse, part(qkv, 0), part(qkv, 1), part(qkv, 2), 0.6, p.mask, p.drop});
  EXPECT_EQ(o.data, p.o.data);
  EXPECT_EQ(lse.data, p.lse.data);

  Array dq = unwritten(p.q.shape), dk = unwritten(p.k.shape), dv = unwritten(p.v.shape);
  run(AttentionBwd{dq, dk, dv, p.c, p.q, p.k, p.v, p.o, p.lse, 0.6, p.mask, p.drop});
  run(AttentionBwd{part(gradients, 0), part(gradients, 1), part(gradients, 2), p.c, part(qkv, 0), part(qkv, 1),
                   part(qkv, 2), o, lse, 0.6, p.mask, p.drop});
  for (std::int64_t row = 0; row < 30; ++row) {
    for (std::int64_t i = 0; i < 4; ++i) {
      ASSERT_EQ(gradients[row * 12 + i], dq[row * 4 + i]);
      ASSERT_EQ(gradients[row * 12 + 4 + i], dk[row * 4 + i]);
      ASSERT_EQ(gradients[row * 12 + 8 + i], dv[row * 4 + i]);
    }
  }
}

// A slice of the queries, heads or samples gives the same rows as the whole, including dropout.
TEST_F(Attention, PartsAreTheWhole) {
  Problem p({6, 6, 3, 4, 2, 3, {Mask::Kind::causal, 0, 0, {}}, 0.3f});
  for (std::int64_t i = 0; i < 3; ++i) p.samples[i] = 20 + i;
  run(p.forward());
  const auto same = [&](const TensorView& o, const TensorView& whole) {
    Array got(o.shape(), 0.0), want(o.shape(), 0.0);
    const auto device = make_host_device();
    device->copy(got, o, stream());
    device->copy(want, whole, stream());
    EXPECT_EQ(got.data, want.data);
  };
  const TensorView q = p.q, k = p.k, v = p.v, whole = p.o;
  {
    Array o = unwritten({2, 3, 4, 3}), lse = unwritten({3, 4, 2});
    Mask mask = p.mask;
    mask.q0 = 3;
    run(AttentionFwd{o, lse, q.slice(0, 3, 5), k, v, 0.6, mask, p.drop});
    same(o, whole.slice(0, 3, 5));
  }
  {
    Array o = unwritten({6, 3, 2, 3}), lse = unwritten({3, 2, 6});
    Drop drop = p.drop;
    drop.head0 += 2;
    run(AttentionFwd{o, lse, q.slice(2, 2, 4), k.slice(2, 1, 2), v.slice(2, 1, 2), 0.6, p.mask, drop});
    same(o, whole.slice(2, 2, 4));
  }
  {
    Array o = unwritten({6, 1, 4, 3}), lse = unwritten({1, 4, 6});
    Drop drop = p.drop;
    drop.samples = TensorView(p.samples).slice(0, 1, 2);
    run(AttentionFwd{o, lse, q.slice(1, 1, 2), k.slice(1, 1, 2), v.slice(1, 1, 2), 0.6, p.mask, drop});
    same(o, whole.slice(1, 1, 2));
  }
}

/// Keys [begin, end) of a problem whose keys are cut into parts.
struct Part {
  std::int64_t begin, end;
  TensorView of(const TensorView& x) const { return x.slice(0, begin, end); }
  Mask mask(const Problem& p) const {
    Mask out = p.mask;
    out.k0 += begin;
    return out;
  }
};

// Attention over parts of the keys, merged, is attention over all of them, as in a ring (Liu et al. 2023).
TEST_F(Attention, MergedPartsOfTheKeysAreTheWhole) {
  for (const Sizes& sizes : kSizes) {
    Problem p(sizes);
    run(p.forward());
    const std::int64_t half = sizes.sk / 2;
    Array o = unwritten(p.o.shape), lse = unwritten(p.lse.shape), o_more = o, lse_more = lse;
    const Part first{0, half}, second{half, sizes.sk};
    run(AttentionFwd{o, lse, p.q, first.of(p.k), first.of(p.v), 0.6, first.mask(p), p.drop});
    run(AttentionFwd{o_more, lse_more, p.q, second.of(p.k), second.of(p.v), 0.6, second.mask(p), p.drop});
    run(AttentionMerge{o, lse, o_more, lse_more});
    expect_near(o, p.o, 1e-13, "o");
    for (std::size_t i = 0; i < lse.data.size(); ++i) { // -infinity where a query sees no key
      ASSERT_TRUE(lse.data[i] == p.lse.data[i] || std::abs(lse.data[i] - p.lse.data[i]) < 1e-13) << i;
    }
  }
}

// With lse and o of all keys, the gradients of parts of the keys are parts of the gradients.
TEST_F(Attention, GradientsOfPartsOfTheKeysArePartsOfTheWhole) {
  for (const Sizes& sizes : kSizes) {
    Problem p(sizes);
    run(p.forward());
    Array dq = unwritten(p.q.shape), dk = unwritten(p.k.shape), dv = unwritten(p.v.shape);
    run(AttentionBwd{dq, dk, dv, p.c, p.q, p.k, p.v, p.o, p.lse, 0.6, p.mask, p.drop});
    Array sum(p.q.shape, 0.0), dk_parts = unwritten(p.k.shape), dv_parts = unwritten(p.v.shape);
    const std::int64_t half = sizes.sk / 2;
    for (const Part part : {Part{0, half}, Part{half, sizes.sk}}) {
      Array more = unwritten(p.q.shape);
      run(AttentionBwd{more, part.of(dk_parts), part.of(dv_parts), p.c, p.q, part.of(p.k), part.of(p.v), p.o, p.lse,
                       0.6, part.mask(p), p.drop});
      run(Add{sum, sum, more});
    }
    expect_near(sum, dq, 1e-13, "dq");
    expect_near(dk_parts, dk, 1e-13, "dk");
    expect_near(dv_parts, dv, 1e-13, "dv");
  }
}

// With add_kv, slices of the queries add to the gradients of the keys that they see.
TEST_F(Attention, SlicesOfTheQueriesAddToTheGradientsOfKeys) {
  for (const Sizes& sizes : kSizes) {
    Problem p(sizes);
    run(p.forward());
    Array dq = unwritten(p.q.shape), dk = unwritten(p.k.shape), dv = unwritten(p.v.shape);
    run(AttentionBwd{dq, dk, dv, p.c, p.q, p.k, p.v, p.o, p.lse, 0.6, p.mask, p.drop});
    Array dq_slices = unwritten(p.q.shape), dk_sum = unwritten(p.k.shape), dv_sum = unwritten(p.v.shape);
    bool add = false;
    for (const Part slice : {Part{0, 1}, Part{1, sizes.sq}}) {
      Mask mask = p.mask;
      mask.q0 += slice.begin;
      Array o = unwritten({slice.end - slice.begin, sizes.b, sizes.a, sizes.d});
      Array lse = unwritten({sizes.b, sizes.a, slice.end - slice.begin});
      run(AttentionFwd{o, lse, slice.of(p.q), p.k, p.v, 0.6, mask, p.drop});
      run(AttentionBwd{slice.of(dq_slices), dk_sum, dv_sum, slice.of(p.c), slice.of(p.q), p.k, p.v, o, lse, 0.6, mask,
                       p.drop, add});
      add = true;
    }
    expect_near(dq_slices, dq, 1e-13, "dq");
    expect_near(dk_sum, dk, 1e-13, "dk");
    expect_near(dv_sum, dv, 1e-13, "dv");
  }
}

} // namespace
} // namespace triax::test
