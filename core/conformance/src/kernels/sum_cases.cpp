// SPDX-License-Identifier: Apache-2.0
// Cases of primitives whose results are sums over many rows.
#include "case_lists.hpp"

namespace triax::conformance::cases {

namespace {

using V = const CaseViews&;
using Use = const UseCall&;

/// Targets of "+=" in f32 with data in 16 bits, as in training: sums are not rounded to the type of the data.
void add_wide_targets(CaseList& list) {
  const auto wide = [](const char* name, Shape shape) {
    return CaseTensor{.name = name, .role = Role::in_out, .shape = shape, .kind = Kind::statistic};
  };
  list.add("gemm/added to a statistic", {in("a", {17, 9}), in("b", {9, 33}), wide("d", {17, 33})},
           [](V v, Use use) { use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"], .beta = 1}); });
  list.add("bias_bwd/into a wider type", {in("dy", {34, 65}), wide("dbias", {65})}, [](V v, Use use) {
    use(BiasBwd{v["dbias"], v["dy"]});
  });
  const Tensors norm = {in("x", {35, 64}),
                        in("dy", {35, 64}),
                        {.name = "mean", .shape = {35}, .kind = Kind::statistic},
                        {.name = "rstd", .shape = {35}, .kind = Kind::statistic, .low = 0.5},
                        wide("dweight", {64}),
                        wide("dbias", {64})};
  list.add("norm_bwd_weight/into a wider type", norm, [](V v, Use use) {
    use(NormBwdWeight{NormKind::layer, v["dweight"], v["dbias"], v["dy"], v["x"], v["mean"], v["rstd"]});
  });
  list.add("embed_bwd/into a wider type",
           {wide("dtable", {23, 33}), in("dy", {37, 2, 33}), own("t", Role::in, DType::i32, {37, 2}, tokens(74, 23))},
           [](V v, Use use) {
             use(EmbedBwd{v["dtable"], v["dy"], v["t"], 0, 23});
           });
}

/// A repeated token: its row is the sum of all its gradients, in order.
void add_repeated_tokens(CaseList& list) {
  std::vector<double> repeated;
  for (int i = 0; i < 2000; ++i) repeated.push_back(i % 7 == 0 ? 1 : 2);
  for (const std::int64_t h : {1, 255, 257})
    list.add(text("embed_bwd/many times, {}", h),
             {in_out("dtable", {5, h}), in("dy", {2000, h}), own("t", Role::in, DType::i32, {2000}, repeated)},
             [](V v, Use use) {
               use(EmbedBwd{v["dtable"], v["dy"], v["t"], 0, 5});
             });
}

} // namespace

void add_sum_cases(CaseList& list) {
  if (list.dtype() != DType::f64) add_wide_targets(list);
  if (list.dtype() == DType::f32) add_repeated_tokens(list);
}

std::vector<OperationCase> large_sum_cases() {
  CaseList list(DType::f32);
  list.add("bias_bwd/many rows", {in("dy", {20011, 33}), in_out("dbias", {33})}, [](V v, Use use) {
    use(BiasBwd{v["dbias"], v["dy"]});
  });
  list.add("sum_squares/many elements", {in("x", {1'000'003}), own("out", Role::out, DType::f64, {1})},
           [](V v, Use use) {
             use(SumSquares{v["out"], v["x"]});
           });
  // A library may split the product over the inner dimension.
  list.add("gemm/long sums", {in("a", {16, 30000}), in("b", {30000, 24}), in_out("d", {16, 24})},
           [](V v, Use use) { use(Gemm{.d = v["d"], .a = v["a"], .b = v["b"], .beta = 1}); });
  return list.take();
}

} // namespace triax::conformance::cases
