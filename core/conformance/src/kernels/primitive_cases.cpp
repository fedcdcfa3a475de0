// SPDX-License-Identifier: Apache-2.0
// Cases for the primitives: sizes that are odd, small, and larger than a vector or a tile; strides where allowed.
#include <limits>

#include "case_lists.hpp"
#include "triax/conformance/case_builder.hpp"

namespace triax::conformance::cases {

namespace {

using V = const CaseViews&;
using Use = const UseCall&;

void add_gemm(CaseList& list) {
  struct Sizes {
    std::int64_t m, n, k;
  };
  for (const auto& [m, n, k] : {Sizes{1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {65, 130, 67}, {150, 41, 128}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Shape a = ta ? Shape{k, m} : Shape{m, k}, b = tb ? Shape{n, k} : Shape{k, n};
        const auto name = text("gemm/{}x{}x{}{}{}", m, n, k, ta ? " ta" : "", tb ? " tb" : "");
        list.add(name, {in("a", a), in("b", b), out("d", {m, n})}, [=](V v, Use use) {
          use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"], .transpose_a = ta, .transpose_b = tb});
        });
        list.add(name + " strided, added", {in("a", a, 3), in("b", b, 5), in_out("d", {m, n})}, [=](V v, Use use) {
          use(Gemm{v["d"], v["a"], v["b"], ta, tb, 0.75, 1});
        });
      }
    }
  }
  list.add("gemm/one batch dimension", {in("a", {3, 5, 7}), in("b", {3, 7, 9}), out("d", {3, 5, 9}, 2)},
           [](V v, Use use) { use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"], .alpha = -2}); });
  list.add("gemm/two batch dimensions", {in("a", {2, 3, 5, 7}, 1), in("b", {2, 3, 9, 7}), in_out("d", {2, 3, 5, 9})},
           [](V v, Use use) {
             use(Gemm{v["d"], v["a"], v["b"], false, true, 1, 0.5});
           });
  list.add("gemm/nothing to sum", {in("a", {3, 0}), in("b", {0, 4}), out("d", {3, 4})},
           [](V v, Use use) { use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"]}); });
}

void add_elementwise(CaseList& list) {
  for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 7}, {34, 65}, {129, 256}}) {
    const auto size = text("{}x{}", rows, n);
    const Shape shape{rows, n}, wide{rows, 2 * n};
    list.add("bias_add/" + size, {in("x", shape), in("bias", {n}), out("y", shape)}, [](V v, Use use) {
      use(BiasAdd{v["y"], v["x"], v["bias"]});
    });
    list.add_in_place("bias_add/in place " + size, {in_out("x", shape), in("bias", {n})}, [](V v, Use use) {
      use(BiasAdd{v["x"], v["x"], v["bias"]});
    });
    list.add("bias_bwd/" + size, {in("dy", shape), in_out("dbias", {n})}, [](V v, Use use) {
      use(BiasBwd{v["dbias"], v["dy"]});
    });
    list.add("add/" + size, {in("a", shape), in("b", shape), out("y", shape)}, [](V v, Use use) {
      use(Add{v["y"], v["a"], v["b"]});
    });
    list.add_in_place("add/onto a " + size, {in_out("a", shape), in("b", shape)}, [](V v, Use use) {
      use(Add{v["a"], v["a"], v["b"]});
    });
    list.add_in_place("add/onto b " + size, {in("a", shape), in_out("b", shape)}, [](V v, Use use) {
      use(Add{v["b"], v["a"], v["b"]});
    });
    list.add("act_fwd/gelu " + size, {in("x", shape), out("y", shape)}, [](V v, Use use) {
      use(ActFwd{Activation::gelu_tanh, v["y"], v["x"]});
    });
    list.add("act_bwd/gelu " + size, {in("x", shape), in("dy", shape), out("dx", shape)}, [](V v, Use use) {
      use(ActBwd{Activation::gelu_tanh, v["dx"], v["dy"], v["x"]});
    });
    list.add_in_place("act_bwd/gelu in place " + size, {in("x", shape), in_out("dy", shape)}, [](V v, Use use) {
      use(ActBwd{Activation::gelu_tanh, v["dy"], v["dy"], v["x"]});
    });
    list.add("act_fwd/silu_mul " + size, {in("x", wide), out("y", shape)}, [](V v, Use use) {
      use(ActFwd{Activation::silu_mul, v["y"], v["x"]});
    });
    list.add("act_bwd/silu_mul " + size, {in("x", wide), in("dy", shape), out("dx", wide)}, [](V v, Use use) {
      use(ActBwd{Activation::silu_mul, v["dx"], v["dy"], v["x"]});
    });
    list.add("sum_squares/" + size, {in("x", shape), own("out", Role::out, DType::f64, {1})}, [](V v, Use use) {
      use(SumSquares{v["out"], v["x"]});
    });
  }
  auto uneven = in("x", {20'000}); // in f32, a running sum would lose the ones
  uneven.values.assign(20'000, 1);
  uneven.values.front() = 1e4;
  list.add("sum_squares/ones beside a large number", {uneven, own("out", Role::out, DType::f64, {1})},
           [](V v, Use use) {
             use(SumSquares{v["out"], v["x"]});
           });
  list.add("bias_add/no rows", {in("x", {0, 5}), in("bias", {5}), out("y", {0, 5})}, [](V v, Use use) {
    use(BiasAdd{v["y"], v["x"], v["bias"]});
  });
  list.add("bias_bwd/no rows", {in("dy", {0, 5}), in_out("dbias", {5})}, [](V v, Use use) {
    use(BiasBwd{v["dbias"], v["dy"]});
  });
  auto gelu_tails = in("x", {3, 40});
  gelu_tails.low = -30;
  gelu_tails.high = 30;
  list.add("act_fwd/gelu far out", {gelu_tails, out("y", {3, 40})}, [](V v, Use use) {
    use(ActFwd{Activation::gelu_tanh, v["y"], v["x"]});
  });
  list.add("act_bwd/gelu far out", {gelu_tails, in("dy", {3, 40}), out("dx", {3, 40})}, [](V v, Use use) {
    use(ActBwd{Activation::gelu_tanh, v["dx"], v["dy"], v["x"]});
  });
}

void add_dropout(CaseList& list) {
  const auto drop = [](V v, float p) {
    return Drop{.p = p,
                .key = kCaseKey,
                .site = 35,
                .samples = v["samples"],
                .head0 = 1,
                .row0 = 2,
                .column0 = 3,
                .rows = 40,
                .width = 90};
  };
  list.add("dropout/rows", {in("x", {14, 65}), out("y", {14, 65}), samples(2)}, [=](V v, Use use) {
    use(Dropout{v["y"], v["x"], drop(v, 0.25f)});
  });
  list.add_in_place("dropout/[s, b, h] in place", {in_out("x", {7, 3, 32}), samples(3)}, [=](V v, Use use) {
    use(Dropout{v["x"], v["x"], drop(v, 0.5f)});
  });
  list.add("dropout/scores", {in("x", {2, 3, 5, 33}), out("y", {2, 3, 5, 33}), samples(2)}, [=](V v, Use use) {
    use(Dropout{v["y"], v["x"], drop(v, 0.1f)});
  });
  list.add("dropout/none", {in("x", {5, 9}), out("y", {5, 9})}, [](V v, Use use) { use(Dropout{v["y"], v["x"], {}}); });
}

void add_norms(CaseList& list) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    const bool layer = kind == NormKind::layer;
    for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{1, 3}, {5, 7}, {35, 64}, {130, 257}}) {
      const auto name = text("{}/{} {}x{}", "{}", layer ? "layer" : "rms", rows, n);
      const Shape shape{rows, n};
      Tensors forward = {in("x", shape), in("weight", {n}), out("y", shape), statistic_out("rstd", {rows})};
      if (layer) forward.push_back(in("bias", {n}));
      if (layer) forward.push_back(statistic_out("mean", {rows}));
      const auto norm = [=](V v, Use use) {
        use(NormFwd{kind, v["y"], v["x"], v["weight"], layer ? v["bias"] : TensorView{},
                    layer ? v["mean"] : TensorView{}, v["rstd"], 1e-5});
      };
      const auto with = [&](const Tensors& more) {
        Tensors all = forward;
        all.insert(all.end(), more.begin(), more.end());
        return all;
      };
      list.add(fill_in(name, {"norm_fwd"}), forward, norm);
      list.add(fill_in(name, {"norm_bwd_input"}), with({in("dy", shape), out("dx", shape)}), [=](V v, Use use) {
        norm(v, use);
        use(NormBwdInput{kind, v["dx"], v["dy"], v["x"], v["weight"], layer ? v["mean"] : TensorView{}, v["rstd"], {}});
      });
      list.add_in_place(fill_in(name, {"norm_bwd_input onto dy"}), with({in_out("dy", shape), in("r", shape)}),
                        [=](V v, Use use) {
                          norm(v, use);
                          use(NormBwdInput{kind, v["dy"], v["dy"], v["x"], v["weight"],
                                           layer ? v["mean"] : TensorView{}, v["rstd"], v["r"]});
                        });
      list.add_in_place(fill_in(name, {"norm_bwd_input onto the residual"}),
                        with({in("dy", shape), in_out("dx", shape)}), [=](V v, Use use) {
                          norm(v, use);
                          use(NormBwdInput{kind, v["dx"], v["dy"], v["x"], v["weight"],
                                           layer ? v["mean"] : TensorView{}, v["rstd"], v["dx"]});
                        });
      Tensors weights = {in("dy", shape), in_out("dweight", {n})};
      if (layer) weights.push_back(in_out("dbias", {n}));
      list.add(fill_in(name, {"norm_bwd_weight"}), with(weights), [=](V v, Use use) {
        norm(v, use);
        use(NormBwdWeight{kind, v["dweight"], layer ? v["dbias"] : TensorView{}, v["dy"], v["x"],
                          layer ? v["mean"] : TensorView{}, v["rstd"]});
      });
    }
  }
}

/// An eps that is not small beside the variance: with 1e-5, the tolerance of f32 would hide another one.
void add_norms_with_large_eps(CaseList& list) {
  const Shape shape{5, 7};
  list.add("norm_fwd/layer large eps",
           {in("x", shape), in("weight", {7}), in("bias", {7}), out("y", shape), statistic_out("mean", {5}),
            statistic_out("rstd", {5})},
           [](V v, Use use) {
             use(NormFwd{NormKind::layer, v["y"], v["x"], v["weight"], v["bias"], v["mean"], v["rstd"], 0.5});
           });
  list.add("norm_fwd/rms large eps", {in("x", shape), in("weight", {7}), out("y", shape), statistic_out("rstd", {5})},
           [](V v, Use use) {
             use(NormFwd{NormKind::rms, v["y"], v["x"], v["weight"], {}, {}, v["rstd"], 0.5});
           });
}

void add_softmax(CaseList& list) {
  struct Sizes {
    std::int64_t sq, sk, q0, k0;
    bool causal;
  };
  for (const Sizes& one :
       {Sizes{1, 1, 0, 0, true}, {7, 7, 0, 0, true}, {5, 33, 28, 0, true}, {9, 40, 3, 6, true}, {6, 70, 0, 0, false}}) {
    const std::int64_t sq = one.sq, sk = one.sk, q0 = one.q0, k0 = one.k0;
    const bool causal = one.causal;
    const Shape shape{2, 3, sq, sk};
    const auto name = text("{}/{}x{} q0 {} k0 {}{}", "{}", sq, sk, q0, k0, causal ? " causal" : "");
    const auto mask = [=](const TensorView& lengths) {
      return Mask{causal ? Mask::Kind::causal : Mask::Kind::none, q0, k0, lengths};
    };
    list.add(fill_in(name, {"softmax_fwd"}), {in("x", shape), out("y", shape), statistic_out("lse", {2, 3, sq})},
             [=](V v, Use use) {
               use(SoftmaxFwd{v["y"], v["x"], 0.3, mask({}), v["lse"]});
             });
    list.add_in_place(fill_in(name, {"softmax_fwd in place, lengths"}),
                      {in_out("x", shape), own("lengths", Role::in, DType::i32, {2}, {0, double(k0 + (sk + 1) / 2)})},
                      [=](V v, Use use) {
                        use(SoftmaxFwd{v["x"], v["x"], 1, mask(v["lengths"]), {}});
                      });
    list.add(fill_in(name, {"softmax_bwd"}), {in("x", shape), in("dy", shape), out("y", shape), out("dx", shape)},
             [=](V v, Use use) {
               use(SoftmaxFwd{v["y"], v["x"], 0.3, mask({}), {}});
               use(SoftmaxBwd{v["dx"], v["dy"], v["y"], 0.3});
             });
    // The probabilities and gradients of some of the keys that a row sees.
    const CaseTensor lse{.name = "lse", .shape = {2, 3, sq}, .kind = Kind::statistic, .low = 2, .high = 4};
    const CaseTensor delta{.name = "delta", .shape = {2, 3, sq}, .kind = Kind::statistic};
    list.add(fill_in(name, {"softmax_from_lse"}), {in("x", shape), lse, out("y", shape)}, [=](V v, Use use) {
      use(SoftmaxFromLse{v["y"], v["x"], v["lse"], 0.3, mask({})});
    });
    list.add_in_place(
        fill_in(name, {"softmax_from_lse in place, lengths"}),
        {in_out("x", shape), lse, own("lengths", Role::in, DType::i32, {2}, {0, double(k0 + (sk + 1) / 2)})},
        [=](V v, Use use) {
          use(SoftmaxFromLse{v["x"], v["x"], v["lse"], 1, mask(v["lengths"])});
        });
    list.add_in_place(fill_in(name, {"softmax_bwd of a part"}), {in("y", shape), in_out("dy", shape), delta},
                      [=](V v, Use use) {
                        use(SoftmaxBwd{v["dy"], v["dy"], v["y"], 0.3, v["delta"]});
                      });
  }
}

void add_attention_parts(CaseList& list) {
  struct Sizes {
    std::int64_t s, b, a, d, padding;
  };
  for (const auto& [s, b, a, d, padding] : {Sizes{1, 1, 1, 1, 0}, {5, 2, 3, 33, 0}, {9, 3, 2, 64, 7}}) {
    const Shape shape{s, b, a, d}, queries{b, a, s};
    const auto size = text("{}x{}x{}x{}{}", s, b, a, d, padding > 0 ? " strided" : "");
    list.add("attention_delta/" + size,
             {in("dout", shape, padding), in("o", shape, padding), statistic_out("delta", queries)}, [](V v, Use use) {
               use(AttentionDelta{v["delta"], v["dout"], v["o"]});
             });
    CaseTensor o = in("o", shape, padding), lse{.name = "lse", .shape = queries, .kind = Kind::statistic}, more = lse;
    o.role = lse.role = Role::in_out;
    more.name = "lse_more";
    // Queries that see no key of one set, of the other, or of both.
    lse.values = more.values = std::vector<double>(static_cast<std::size_t>(queries.elements()), 0.75);
    for (std::size_t i = 0; i < lse.values.size(); ++i) {
      if (i % 5 == 1 || i % 5 == 3) lse.values[i] = -std::numeric_limits<double>::infinity();
      if (i % 5 == 2 || i % 5 == 3) more.values[i] = -std::numeric_limits<double>::infinity();
      if (i % 5 == 4) more.values[i] = -3.5;
    }
    list.add("attention_merge/" + size, {o, lse, in("o_more", shape, padding), more}, [](V v, Use use) {
      use(AttentionMerge{v["o"], v["lse"], v["o_more"], v["lse_more"]});
    });
  }
}

void add_rope(CaseList& list) {
  for (const bool inverse : {false, true}) {
    list.add(text("rope/{}", inverse ? "inverse" : "forward"), {in("x", {5, 2, 3, 8}), out("y", {5, 2, 3, 8})},
             [=](V v, Use use) {
               use(Rope{v["y"], v["x"], 11, 10000, inverse});
             });
    list.add(text("rope/strided {}", inverse ? "inverse" : "forward"),
             {in("x", {5, 2, 3, 34}, 3), out("y", {5, 2, 3, 34}, 5)}, [=](V v, Use use) {
               use(Rope{v["y"], v["x"], 0, 500, inverse});
             });
    // Pairs with 10, 3, 1 and less turns over the original positions: kept, mixed, and divided by the factor.
    list.add(text("rope/scaled {}", inverse ? "inverse" : "forward"), {in("x", {5, 2, 3, 16}), out("y", {5, 2, 3, 16})},
             [=](V v, Use use) {
               use(Rope{v["y"], v["x"], 100, 10000, inverse, {8, 1, 4, 64}});
             });
  }
  list.add_in_place("rope/in place", {in_out("x", {17, 1, 2, 64})}, [](V v, Use use) {
    use(Rope{v["x"], v["x"], 3, 10000, false});
  });
}

void add_vocabulary(CaseList& list) {
  list.add("embed_fwd/whole",
           {in("table", {23, 33}), out("y", {7, 2, 33}), own("t", Role::in, DType::i32, {7, 2}, tokens(14, 23))},
           [](V v, Use use) {
             use(EmbedFwd{v["y"], v["table"], v["t"], 0, 23});
           });
  list.add("embed_fwd/range with padding",
           {in("table", {9, 33}), out("y", {7, 2, 33}), own("t", Role::in, DType::i32, {7, 2}, tokens(14, 23))},
           [](V v, Use use) {
             use(EmbedFwd{v["y"], v["table"], v["t"], 6, 7});
           });
  list.add("embed_bwd/range with padding",
           {in_out("dtable", {9, 33}), in("dy", {37, 2, 33}), own("t", Role::in, DType::i32, {37, 2}, tokens(74, 23))},
           [](V v, Use use) {
             use(EmbedBwd{v["dtable"], v["dy"], v["t"], 6, 7});
           });
  struct Range {
    std::int64_t columns, begin, valid;
  };
  for (const Range& one : {Range{23, 0, 23}, {13, 10, 11}, {70, 3, 65}, {4, 80, 0}}) {
    const std::int64_t columns = one.columns, begin = one.begin, valid = one.valid;
    const Tensors tensors = {in("logits", {10, columns}), statistic_out("max", {10}), statistic_out("sum", {10}),
                             statistic_out("target", {10}), own("t", Role::in, DType::i32, {10}, tokens(10, 23))};
    const auto forward = [=](V v, Use use) {
      use(XentMax{v["max"], v["logits"], valid});
      use(XentSums{v["sum"], v["target"], v["logits"], v["max"], v["t"], begin, valid});
    };
    const auto size = text("{} columns, {} valid", columns, valid);
    list.add("xent_max/" + size, {in("logits", {10, columns}), statistic_out("max", {10})}, [=](V v, Use use) {
      use(XentMax{v["max"], v["logits"], valid});
    });
    list.add("xent_sums/" + size, tensors, forward);
    Tensors backward = tensors;
    backward[0].role = Role::in_out;
    backward.push_back(scalars_tensor({.loss_scale = 4}));
    list.add("xent_bwd/" + size, backward, [=](V v, Use use) {
      forward(v, use);
      use(XentBwd{v["logits"], v["max"], v["sum"], v["t"], begin, valid, 0.125, scalars_of(v)});
    });
  }
  auto sums = CaseTensor{.name = "sum", .shape = {15}, .kind = Kind::statistic, .low = 1, .high = 9};
  auto target = CaseTensor{.name = "target", .shape = {15}, .kind = Kind::statistic};
  auto many_sums = CaseTensor{.name = "sum", .shape = {1402}, .kind = Kind::statistic, .low = 1, .high = 9};
  auto many_targets = CaseTensor{.name = "target", .shape = {1402}, .kind = Kind::statistic};
  list.add("xent_loss/more positions than a block has threads",
           {many_sums, many_targets, own("loss", Role::out, DType::f64, {2})}, [](V v, Use use) {
             use(XentLoss{v["loss"], v["sum"], v["target"]});
           });
  list.add("xent_loss/three samples", {sums, target, own("loss", Role::out, DType::f64, {3})}, [](V v, Use use) {
    use(XentLoss{v["loss"], v["sum"], v["target"]});
  });
}

} // namespace

std::vector<OperationCase> primitive_cases(DType dtype) {
  CaseList list(dtype);
  add_gemm(list);
  add_elementwise(list);
  add_dropout(list);
  add_norms(list);
  add_norms_with_large_eps(list);
  add_softmax(list);
  add_attention_parts(list);
  add_rope(list);
  add_vocabulary(list);
  add_sum_cases(list);
  add_update_cases(list);
  return list.take();
}

} // namespace triax::conformance::cases
