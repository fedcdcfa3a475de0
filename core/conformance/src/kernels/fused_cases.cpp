// SPDX-License-Identifier: Apache-2.0
// Cases for the fused operations.
#include "triax/conformance/case_builder.hpp"

namespace triax::conformance::cases {

namespace {

using V = const CaseViews&;
using Use = const UseCall&;

void add_linear(CaseList& list) {
  struct Sizes {
    std::int64_t rows, n, k;
  };
  struct Act {
    Activation act;
    const char* note;
    std::int64_t factor; // width before the activation over width after it
  };
  for (const auto& [rows, n, k] : {Sizes{1, 2, 3}, {10, 18, 7}, {70, 130, 65}}) {
    const auto size = text("{}x{}x{}", rows, n, k);
    list.add("linear_fwd/plain " + size, {in("x", {rows, k}), in("w", {n, k}), out("y", {rows, n})},
             [](V v, Use use) { use(LinearFwd{.y = v["y"], .x = v["x"], .w = v["w"]}); });
    list.add("linear_fwd/bias " + size, {in("x", {rows, 1, k}), in("w", {n, k}), in("b", {n}), out("y", {rows, 1, n})},
             [](V v, Use use) { use(LinearFwd{.y = v["y"], .x = v["x"], .w = v["w"], .bias = v["b"]}); });
    list.add("linear_fwd/gelu " + size,
             {in("x", {rows, k}), in("w", {n, k}), in("b", {n}), out("y", {rows, n}), out("z", {rows, n})},
             [](V v, Use use) {
               use(LinearFwd{v["y"], v["z"], v["x"], v["w"], v["b"], Activation::gelu_tanh});
             });
    list.add("linear_fwd/silu_mul " + size,
             {in("x", {rows, k}), in("w", {n, k}), out("y", {rows, n / 2}), out("z", {rows, n})}, [](V v, Use use) {
               use(LinearFwd{v["y"], v["z"], v["x"], v["w"], {}, Activation::silu_mul});
             });
    list.add("linear_bwd_input/" + size, {in("dy", {rows, n}), in("w", {n, k}), out("dx", {rows, k})},
             [](V v, Use use) {
               use(LinearBwdInput{v["dx"], v["dy"], v["w"]});
             });
    for (const auto& [act, note, factor] :
         {Act{Activation::gelu_tanh, "gelu", 1}, {Activation::silu_mul, "silu_mul", 2}}) {
      list.add(
          text("linear_bwd_input/{} {}", note, size),
          {in("dy", {rows, 1, n}), in("w", {n, k}), in("z", {rows, 1, factor * k}), out("dx", {rows, 1, factor * k})},
          [act = act](V v, Use use) {
            use(LinearBwdInput{v["dx"], v["dy"], v["w"], v["z"], act});
          });
    }
    list.add("linear_bwd_weight/bias " + size,
             {in("dy", {rows, n}), in("x", {rows, k}), in_out("dw", {n, k}), in_out("db", {n})}, [](V v, Use use) {
               use(LinearBwdWeight{v["dw"], v["db"], v["dy"], v["x"]});
             });
    list.add("linear_bwd_weight/plain " + size, {in("dy", {rows, n}), in("x", {rows, k}), in_out("dw", {n, k})},
             [](V v, Use use) {
               use(LinearBwdWeight{v["dw"], {}, v["dy"], v["x"]});
             });
  }
}

void add_linear_edges(CaseList& list) {
  list.add("linear_fwd/no rows", {in("x", {0, 5}), in("w", {3, 5}), out("y", {0, 3})},
           [](V v, Use use) { use(LinearFwd{.y = v["y"], .x = v["x"], .w = v["w"]}); });
  list.add("linear_bwd_weight/no rows", {in("dy", {0, 3}), in("x", {0, 5}), in_out("dw", {3, 5})}, [](V v, Use use) {
    use(LinearBwdWeight{v["dw"], {}, v["dy"], v["x"]});
  });
  // As in training in 16 bits: gradients are added in f32.
  const auto wide = [](const char* name, Shape shape) {
    return CaseTensor{.name = name, .role = Role::in_out, .shape = shape, .kind = Kind::statistic};
  };
  list.add("linear_bwd_weight/into a wider type",
           {in("dy", {70, 130}), in("x", {70, 65}), wide("dw", {130, 65}), wide("db", {130})}, [](V v, Use use) {
             use(LinearBwdWeight{v["dw"], v["db"], v["dy"], v["x"]});
           });
}

void add_bias_dropout_add(CaseList& list) {
  const Shape shape{9, 2, 33};
  const auto drop = [](V v, float p) {
    Drop d{.p = p, .key = kCaseKey, .site = 18, .row0 = 4, .column0 = 5, .rows = 20, .width = 50};
    if (p > 0) d.samples = v["samples"];
    return d;
  };
  for (const float p : {0.0f, 0.3f}) {
    for (const bool bias : {false, true}) {
      const auto note = text("p {}{}", p, bias ? " bias" : "");
      const auto bias_of = [=](V v) { return bias ? v["b"] : TensorView{}; };
      list.add("bias_dropout_add/" + note, {in("x", shape), in("b", {33}), in("r", shape), out("y", shape), samples(2)},
               [=](V v, Use use) {
                 use(BiasDropoutAdd{v["y"], v["x"], bias_of(v), v["r"], drop(v, p)});
               });
      list.add_in_place("bias_dropout_add/in place " + note,
                        {in("x", shape), in("b", {33}), in_out("r", shape), samples(2)}, [=](V v, Use use) {
                          use(BiasDropoutAdd{v["r"], v["x"], bias_of(v), v["r"], drop(v, p)});
                        });
      list.add("bias_dropout_add_norm/layer " + note,
               {in("x", shape), in("b", {33}), in_out("r", shape), out("normed", shape), statistic_out("mean", {18}),
                statistic_out("rstd", {18}), in("w", {33}), in("nb", {33}), samples(2)},
               [=](V v, Use use) {
                 use(BiasDropoutAddNorm{v["r"], v["normed"], v["mean"], v["rstd"], v["x"], bias_of(v), v["r"],
                                        drop(v, p), NormKind::layer, v["w"], v["nb"], 1e-5});
               });
    }
  }
  list.add("bias_dropout_add_norm/rms",
           {in("x", shape), in("r", shape), out("y", shape), out("normed", shape), statistic_out("rstd", {9, 2}),
            in("w", {33})},
           [](V v, Use use) {
             use(BiasDropoutAddNorm{.y = v["y"],
                                    .normed = v["normed"],
                                    .rstd = v["rstd"],
                                    .x = v["x"],
                                    .residual = v["r"],
                                    .kind = NormKind::rms,
                                    .weight = v["w"],
                                    .eps = 0.5}); // not small beside the variance
           });
}

struct AttentionSizes {
  const char* name;
  std::int64_t sq, sk, b, a, a_kv, d;
  bool causal = true;
  std::int64_t q0 = 0, k0 = 0;
  float p = 0;
  bool lengths = false;
  std::int64_t padding = 0;
};

void add_attention(CaseList& list, const AttentionSizes& s) {
  const Shape q{s.sq, s.b, s.a, s.d}, k{s.sk, s.b, s.a_kv, s.d};
  Tensors tensors = {in("q", q, s.padding), in("k", k, s.padding), in("v", k, s.padding), out("o", q),
                     statistic_out("lse", {s.b, s.a, s.sq})};
  if (s.p > 0) tensors.push_back(samples(s.b));
  if (s.lengths) {
    std::vector<double> lengths;
    for (std::int64_t i = 0; i < s.b; ++i) lengths.push_back(static_cast<double>(s.k0 + (s.sk + i) / (1 + i % 2)));
    tensors.push_back(own("lengths", Role::in, DType::i32, {s.b}, lengths));
  }
  const auto mask = [=](V v) {
    return Mask{s.causal ? Mask::Kind::causal : Mask::Kind::none, s.q0, s.k0, s.lengths ? v["lengths"] : TensorView{}};
  };
  const auto drop = [=](V v) {
    Drop d{.p = s.p, .key = kCaseKey, .site = 49, .head0 = 2, .rows = s.q0 + s.sq + 1, .width = s.k0 + s.sk + 3};
    if (s.p > 0) d.samples = v["samples"];
    return d;
  };
  const auto forward = [=](V v, Use use) {
    use(AttentionFwd{v["o"], v["lse"], v["q"], v["k"], v["v"], 0.4, mask(v), drop(v)});
  };
  list.add(text("attention_fwd/{}", s.name), tensors, forward);
  for (CaseTensor more :
       {in("dout", q, s.padding), out("dq", q, s.padding), out("dk", k, s.padding), out("dv", k, s.padding)}) {
    tensors.push_back(std::move(more));
  }
  list.add(text("attention_bwd/{}", s.name), tensors, [=](V v, Use use) {
    forward(v, use);
    use(AttentionBwd{v["dq"], v["dk"], v["dv"], v["dout"], v["q"], v["k"], v["v"], v["o"], v["lse"], 0.4, mask(v),
                     drop(v)});
  });
}

/// The backward for a part of the keys, with lse and o of all of them: keys [begin, end) of `sk`. With `adds`, its
/// gradients are added to those of other queries.
struct PartOfKeys {
  const char* name;
  std::int64_t sq, sk, b, a, a_kv, d, begin, end;
  std::int64_t q0 = 0;
  float p = 0;
  bool adds = false;
};

void add_part_of_keys(CaseList& list, const PartOfKeys& s) {
  const Shape q{s.sq, s.b, s.a, s.d}, k{s.sk, s.b, s.a_kv, s.d}, part{s.end - s.begin, s.b, s.a_kv, s.d};
  Tensors tensors = {in("q", q),    in("k", k),  in("v", k), out("o", q), statistic_out("lse", {s.b, s.a, s.sq}),
                     in("dout", q), out("dq", q)};
  for (const char* name : {"dk", "dv"}) tensors.push_back(s.adds ? in_out(name, part) : out(name, part));
  if (s.p > 0) tensors.push_back(samples(s.b));
  list.add(text("attention_bwd/{}", s.name), tensors, [=](V v, Use use) {
    Drop drop{.p = s.p, .key = kCaseKey, .site = 33, .head0 = 1, .rows = s.q0 + s.sq, .width = s.sk};
    if (s.p > 0) drop.samples = v["samples"];
    Mask mask{Mask::Kind::causal, s.q0, 0, {}};
    use(AttentionFwd{v["o"], v["lse"], v["q"], v["k"], v["v"], 0.4, mask, drop});
    mask.k0 = s.begin;
    use(AttentionBwd{v["dq"], v["dk"], v["dv"], v["dout"], v["q"], v["k"].slice(0, s.begin, s.end),
                     v["v"].slice(0, s.begin, s.end), v["o"], v["lse"], 0.4, mask, drop, s.adds});
  });
}

void add_parts_of_keys(CaseList& list) {
  for (const PartOfKeys& part : {
           PartOfKeys{"the first keys", 7, 7, 2, 3, 3, 5, 0, 3},
           {"the last keys", 7, 7, 2, 3, 3, 5, 3, 7},
           {"keys in the middle, dropout", 20, 70, 2, 4, 2, 9, 16, 53, 45, 0.3f},
           {"keys of later queries", 6, 14, 1, 2, 2, 8, 9, 14, 3},
           {"added", 9, 9, 2, 4, 2, 6, 0, 9, 0, 0, true},
           {"some keys, added, dropout", 70, 150, 1, 2, 1, 33, 31, 140, 80, 0.1f, true},
           // More keys than a block of any kernel set.
           {"many keys, added", 40, 700, 1, 2, 2, 16, 20, 690, 660, 0, true},
       }) {
    add_part_of_keys(list, part);
  }
}

void add_attention(CaseList& list) {
  for (const AttentionSizes& sizes : {
           AttentionSizes{"one", 1, 1, 1, 1, 1, 1},
           AttentionSizes{"causal", 7, 7, 2, 3, 3, 5},
           AttentionSizes{.name = "every key", .sq = 6, .sk = 11, .b = 1, .a = 2, .a_kv = 2, .d = 9, .causal = false},
           AttentionSizes{
               .name = "a slice of the queries", .sq = 4, .sk = 13, .b = 2, .a = 2, .a_kv = 2, .d = 8, .q0 = 9},
           AttentionSizes{
               .name = "keys ahead of queries", .sq = 9, .sk = 5, .b = 1, .a = 2, .a_kv = 2, .d = 4, .q0 = 1, .k0 = 3},
           AttentionSizes{
               .name = "grouped, strided", .sq = 9, .sk = 9, .b = 2, .a = 6, .a_kv = 2, .d = 6, .padding = 7},
           AttentionSizes{.name = "dropout", .sq = 9, .sk = 12, .b = 3, .a = 4, .a_kv = 2, .d = 6, .q0 = 3, .p = 0.3f},
           AttentionSizes{.name = "lengths",
           .sq = 8,
           .sk = 8,
           .b = 3,
           .a = 2,
           .a_kv = 1,
           .d = 7,
           .causal = false,
           .lengths = true},
           AttentionSizes{.name = "past a tile", .sq = 70, .sk = 70, .b = 1, .a = 2, .a_kv = 2, .d = 33, .p = 0.1f},
           // Longer than the blocks of queries and keys of any kernel set.
           AttentionSizes{.name = "long", .sq = 530, .sk = 530, .b = 1, .a = 2, .a_kv = 1, .d = 9, .p = 0.1f},
           AttentionSizes{.name = "late queries",
           .sq = 66,
           .sk = 700,
           .b = 2,
           .a = 1,
           .a_kv = 1,
           .d = 5,
           .q0 = 600,
           .lengths = true},
           AttentionSizes{.name = "long, every key",
           .sq = 300,
           .sk = 600,
           .b = 1,
           .a = 1,
           .a_kv = 1,
           .d = 6,
           .causal = false,
           .padding = 2},
       }) {
    add_attention(list, sizes);
  }
}

void add_rest(CaseList& list) {
  list.add("xent_fused/padding",
           {in("logits", {12, 70}), own("t", Role::in, DType::i32, {6, 2}, tokens(12, 67)),
            own("loss", Role::out, DType::f64, {2}), statistic_out("max", {12}), statistic_out("sum", {12}),
            statistic_out("target", {12})},
           [](V v, Use use) {
             use(XentFused{v["loss"], v["max"], v["sum"], v["target"], v["logits"], v["t"], 67});
           });
  Tensors tensors = {scalars_tensor({.lr = 0.01f, .clip = 0.7f, .step = 5})};
  for (const auto& [tag, size] : {std::pair<const char*, std::int64_t>{"1", 130}, {"2", 3}}) {
    for (const char* name : {"p", "m", "v", "g"}) {
      tensors.push_back({.name = std::string(name) + tag,
                         .role = *name == 'g' ? Role::in : Role::in_out,
                         .shape = {size},
                         .kind = Kind::statistic,
                         .low = *name == 'v' ? 0.0 : -1.5});
    }
  }
  list.add("multi_adamw/two", tensors, [](V v, Use use) {
    const AdamW shards[] = {{v["p1"], v["g1"], v["m1"], v["v1"], {}, 0.9, 0.95, 0.25, 0.1, scalars_of(v)},
                            {v["p2"], v["g2"], v["m2"], v["v2"], {}, 0.9, 0.95, 1e-8, 0, scalars_of(v)}};
    use(MultiAdamW{shards});
  });
}

/// More shards than fit into one launch, of odd sizes, one of them empty; with two sets of factors, and with and
/// without a working copy.
void add_many_shards(CaseList& list) {
  constexpr int kShards = 110;
  Tensors tensors = {scalars_tensor({.lr = 0.01f, .clip = 0.7f, .step = 5})};
  for (int i = 0; i < kShards; ++i) {
    const std::int64_t size = i == 50 ? 0 : i == 7 ? 20'001 : 1 + i * 37 % 90;
    for (const char* name : {"p", "m", "v", "g"}) {
      tensors.push_back({.name = text("{}{}", name, i),
                         .role = *name == 'g' ? Role::in : Role::in_out,
                         .shape = {size},
                         .kind = Kind::statistic,
                         .low = *name == 'v' ? 0.0 : -1.5});
    }
    if (i % 5 != 0) tensors.push_back(out(text("w{}", i), {size}));
  }
  list.add("multi_adamw/many", tensors, [](V v, Use use) {
    std::vector<AdamW> shards;
    for (int i = 0; i < kShards; ++i) {
      const auto view = [&](const char* name) { return v[text("{}{}", name, i)]; };
      shards.push_back({view("p"), view("g"), view("m"), view("v"), i % 5 == 0 ? TensorView{} : view("w"),
                        i < 60 ? 0.9 : 0.8, 0.95, 1e-8, i % 2 * 0.1, scalars_of(v)});
    }
    use(MultiAdamW{shards});
  });
}

} // namespace

std::vector<OperationCase> fused_cases(DType dtype) {
  CaseList list(dtype);
  add_linear(list);
  add_linear_edges(list);
  add_bias_dropout_add(list);
  add_attention(list);
  add_parts_of_keys(list);
  add_rest(list);
  add_many_shards(list);
  return list.take();
}

} // namespace triax::conformance::cases
