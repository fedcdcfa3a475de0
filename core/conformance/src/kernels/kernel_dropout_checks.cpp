// SPDX-License-Identifier: Apache-2.0
// Dropout: the elements that are dropped are those of the numbering of Drop, in every operation that has dropout.
#include <string>
#include <vector>

#include "formulas.hpp"
#include "kernel_check_tables.hpp"
#include "triax/conformance/case_builder.hpp"

namespace triax::conformance::cases {

namespace {

constexpr std::int64_t kBatch = 2, kHeads = 3, kQueries = 5, kWidth = 12, kFirstSample = 7;

Drop drop_for(const TensorView& samples) {
  return {.p = 0.375f,
          .key = kCaseKey,
          .site = 21,
          .samples = samples,
          .head0 = 1,
          .row0 = 2,
          .column0 = 3,
          .rows = 40,
          .width = 90};
}

/// A case whose results are the factors of dropout times `unit`, and the position of each element.
struct MaskCase {
  OperationCase one;
  std::string output;
  double unit;
  formulas::DropPosition (*position)(const Drop& drop, std::int64_t element);
};

CaseTensor constant(CaseTensor tensor, double value) {
  tensor.low = tensor.high = value;
  return tensor;
}

formulas::DropPosition in_rows(const Drop& drop, std::int64_t element) {
  return formulas::position_in_rows(drop, element / kWidth, element % kWidth);
}

formulas::DropPosition in_scores(const Drop&, std::int64_t element) {
  return {element / (kHeads * kQueries * kWidth), element / (kQueries * kWidth) % kHeads, element / kWidth % kQueries,
          element % kWidth};
}

/// [sq, b, a, d]: with values that are the identity, column d is key d.
formulas::DropPosition in_heads(const Drop&, std::int64_t element) {
  return {element / (kHeads * kWidth) % kBatch, element / kWidth % kHeads, element / (kHeads * kWidth * kBatch),
          element % kWidth};
}

/// All keys have the same score, and the value of key i is row i of the identity: the output is the mask / keys.
MaskCase attention_case(DType type) {
  std::vector<double> identity;
  for (std::int64_t key = 0; key < kWidth; ++key)
    for (std::int64_t copy = 0; copy < kBatch * kHeads; ++copy)
      for (std::int64_t i = 0; i < kWidth; ++i) identity.push_back(i == key ? 1 : 0);
  CaseTensor values = in("v", {kWidth, kBatch, kHeads, kWidth});
  values.values = std::move(identity);
  const Shape queries{kQueries, kBatch, kHeads, kWidth};
  return {{"attention_fwd/mask of dropout",
           type,
           {constant(in("q", queries), 0), in("k", {kWidth, kBatch, kHeads, kWidth}), values, out("o", queries),
            statistic_out("lse", {kBatch, kHeads, kQueries}), samples(kBatch, kFirstSample)},
           [](const CaseViews& v, const UseCall& use) {
             const Drop drop = drop_for(v["samples"]);
             const Mask mask{Mask::Kind::none, drop.row0, drop.column0, {}};
             use(AttentionFwd{v["o"], v["lse"], v["q"], v["k"], v["v"], 0.5, mask, drop});
           }},
          "o",
          1 / static_cast<double>(kWidth),
          in_heads};
}

std::vector<MaskCase> mask_cases(DType type) {
  const Shape rows{kQueries, kBatch, kWidth}, scores{kBatch, kHeads, kQueries, kWidth};
  std::vector<MaskCase> out_cases;
  out_cases.push_back({{"dropout/mask of rows",
                        type,
                        {constant(in("x", rows), 1), out("y", rows), samples(kBatch, kFirstSample)},
                        [](const CaseViews& v, const UseCall& use) {
                          use(Dropout{v["y"], v["x"], drop_for(v["samples"])});
                        }},
                       "y",
                       1,
                       in_rows});
  out_cases.push_back({{"dropout/mask of scores",
                        type,
                        {constant(in("x", scores), 1), out("y", scores), samples(kBatch, kFirstSample)},
                        [](const CaseViews& v, const UseCall& use) {
                          use(Dropout{v["y"], v["x"], drop_for(v["samples"])});
                        }},
                       "y",
                       1,
                       in_scores});
  out_cases.push_back(
      {{"bias_dropout_add/mask of dropout",
        type,
        {constant(in("x", rows), 1), constant(in("r", rows), 0), out("y", rows), samples(kBatch, kFirstSample)},
        [](const CaseViews& v, const UseCall& use) {
          use(BiasDropoutAdd{v["y"], v["x"], {}, v["r"], drop_for(v["samples"])});
        }},
       "y",
       1,
       in_rows});
  out_cases.push_back(attention_case(type));
  return out_cases;
}

void mask_is_that_of_the_numbering(const KernelSubject& subject, Report& report) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < kBatch; ++i) numbers.push_back(sample_number(kFirstSample, i));
  const Drop drop = drop_for({numbers.data(), DType::i64, {kBatch}});
  KernelSession session(subject.kernels());
  for (const DType type : subject.answers.types)
    for (const MaskCase& each : mask_cases(type)) {
      const CaseRun run = session.run(each.one);
      if (!run.refusals.empty()) continue;
      const std::vector<double>& got = run.results.at(each.output);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const formulas::DropPosition at = each.position(drop, static_cast<std::int64_t>(i));
        const double want = each.unit * formulas::drop_factor(drop, at);
        if ((got[i] == 0) == (want == 0)) continue;
        report.fail(text("{}: the element of head {}, row {}, column {} of sample {} is {}, must be {}",
                         to_text(each.one), drop.head0 + at.head, drop.row0 + at.row, drop.column0 + at.column,
                         numbers[static_cast<std::size_t>(at.sample)], got[i], want));
        break;
      }
    }
}

constexpr KernelCheck kKernelDropoutChecks[] = {
    {"Dropout.MaskIsThatOfTheNumbering", "K20", unless_computes, mask_is_that_of_the_numbering},
};

} // namespace

std::span<const KernelCheck> kernel_dropout_checks() {
  return kKernelDropoutChecks;
}

} // namespace triax::conformance::cases
