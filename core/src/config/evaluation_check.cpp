// SPDX-License-Identifier: Apache-2.0
#include "config/evaluation_check.hpp"

#include <cstdint>
#include <string>

#include "config/derive.hpp"

namespace triax::config {

namespace {

bool has_no_validation(const Values& values) {
  return corpora_of(values, kValidation).paths.empty() && values.has(kValidation.path);
}

} // namespace

Refusals check_evaluation(const Values& values, Purpose purpose) {
  Refusals out;
  if (purpose == Purpose::evaluate) {
    if (has_no_validation(values))
      out.add(make_refusal(ErrorCode::kMissing, {kValidation.path}, "nothing to evaluate on: data.validation is empty")
                  .with_hint("add --data PREFIX, or set data.validation"));
    return out;
  }
  const auto *every = values.find<std::int64_t>("eval.every"), *batches = values.find<std::int64_t>("eval.batches");
  const auto* prompt = values.find<std::string>("eval.sample");
  if (every && *every == 0 && prompt && !prompt->empty())
    out.add(make_refusal(ErrorCode::kConflict, {"eval.sample", "eval.every"},
                         "eval.sample has no effect with eval.every = 0: there are no evaluations")
                .with_hint("set eval.every, or remove eval.sample"));
  if (!every || *every == 0) return out;
  if (batches && *batches == 0)
    out.add(make_refusal(ErrorCode::kMissing, {"eval.every", "eval.batches"},
                         "eval.batches is required with eval.every = {} (number of global batches per evaluation)",
                         *every)
                .with_hint("write eval.batches = 8, or eval.every = 0"));
  if (has_no_validation(values))
    out.add(make_refusal(ErrorCode::kMissing, {"eval.every", "data.validation"},
                         "data.validation is required with eval.every = {} (token files to evaluate on)", *every)
                .with_hint("name them, or write eval.every = 0"));
  return out;
}

} // namespace triax::config
