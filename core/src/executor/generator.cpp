// SPDX-License-Identifier: Apache-2.0
// Runs the forwards of calls.
#include "executor/generator.hpp"

#include <algorithm>
#include <array>

#include "base/caught_error.hpp"
#include "executor/parameter_gathers.hpp"
#include "triax/error.hpp"

namespace triax::executor {

using schedule::Kind;
using schedule::ProgramAction;

Generator::Generator(const GeneratorParts& parts)
    : parts_(parts),
      transfers_(parts.device, parts.groups, std::array{&parts.state.program()}, parts.assumptions),
      lazy_load_guard_(find_extension<LazyLoadGuard>(parts.device)),
      ran_(parts.state.call_sizes().size()) {}

void Generator::append(const TensorView& tokens) {
  check(tokens);
  const std::span<const std::int64_t> sizes = parts_.state.call_sizes();
  appended_ = 0;
  const std::int64_t all = tokens.size(0);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (; all - appended_ >= sizes[i]; appended_ += sizes[i], length_ += sizes[i]) {
      if (lazy_load_guard_) lazy_load_guard_->set_may_load_modules(!ran_[i]);
      call({length_, sizes[i]}, tokens.slice(0, appended_, appended_ + sizes[i]), appended_);
      ran_[i] = true;
    }
}

void Generator::restart() {
  parts_.state.clear_cache(parts_.device, parts_.stream);
  length_ = 0;
}

void Generator::check(const TensorView& tokens) const {
  const LayerContext& context = parts_.state.context();
  const std::int64_t sequences = parts_.state.microbatches() * context.micro;
  TRIAX_REQUIRE(tokens.dtype() == DType::i32 && tokens.rank() == 2 && tokens.contiguous() &&
                    tokens.size(1) == sequences && tokens.size(0) >= 1,
                "tokens are i32 [n, {}], got {}", sequences, to_text(tokens));
  const std::int64_t count = tokens.size(0);
  if (count > context.max_rows)
    throw Error(text("append() got {} tokens; at most {} are allowed in one call (LayerContext::max_rows)", count,
                     context.max_rows),
                {},
                text("append at most {} tokens at once, or create the layers with a larger LayerContext::max_rows",
                     context.max_rows));
  if (length_ + count > context.sequence)
    throw Error(
        text("the cache has {} positions, of which {} are used; {} more do not fit", context.sequence, length_, count),
        {}, "create the layers with a larger LayerContext::sequence, or begin anew with restart()");
  for (std::int64_t i = 0; i < tokens.elements(); ++i) {
    const std::int32_t token = tokens.as<std::int32_t>()[i];
    TRIAX_REQUIRE(token >= 0 && token < context.vocab, "token {} is not in the vocabulary of {} tokens", token,
                  context.vocab);
  }
}

/// `first`: of the call's rows in the logits of this append.
void Generator::call(const Rows& rows, const TensorView& tokens, std::int64_t first) {
  const std::span<const ProgramAction> actions = parts_.state.program().actions();
  parts_.state.set_rows(rows.count);
  if (parts_.state.reads_tokens()) stage_tokens(tokens);
  for (ActionId id = 0; id < actions.size(); ++id) {
    try {
      run(id, rows, first);
    } catch (...) {
      const Error error = caught_error();
      throw Error(error.message(),
                  text("rows {} to {}, {}{}{}", rows.begin, rows.end() - 1, parts_.state.program().label(id),
                       error.where().empty() ? "" : ", ", error.where()),
                  error.hint());
    }
  }
  parts_.device.wait(parts_.stream.record(), deadline());
  transfers_.finish(deadline());
}

void Generator::stage_tokens(const TensorView& tokens) {
  const std::int64_t rows = tokens.size(0), b = parts_.state.context().micro;
  for (int k = 0; k < parts_.state.microbatches(); ++k) {
    const TensorView host(parts_.state.host_tokens().at(k).data(), DType::i32, {rows, b});
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(tokens.at(row).as<const std::int32_t>() + k * b, b, host.at(row).as<std::int32_t>());
    parts_.device.upload(parts_.state.batch(k).tokens.slice(0, 0, rows), host, parts_.stream);
  }
}

void Generator::run(ActionId id, const Rows& rows, std::int64_t first) {
  const ProgramAction& action = parts_.state.program().actions()[id];
  if (action.kind == Kind::unshard)
    return unshard_parameters(parts_.state.parameters(), parts_.state.stage(action.stage), action.weights,
                              parts_.groups, transfers_, parts_.stream, id);
  if (schedule::is_transfer(action.kind))
    return transfers_.send_or_receive(action, id, parts_.state.stage(action.stage).boundary(action), parts_.stream);
  for (const ActionId waited : action.waits) transfers_.make_wait(parts_.stream, waited);
  parts_.device.progress();
  if (action.kind == Kind::reshard) return; // later actions may use the slot
  parts_.stream.begin(id, parts_.state.program().label(id));
  forward(id, rows, first);
  parts_.stream.end(id);
}

void Generator::forward(ActionId id, const Rows& rows, std::int64_t first) {
  const ProgramAction& action = parts_.state.program().actions()[id];
  const MicrobatchViews& batch = parts_.state.batch(action.microbatch);
  const LayerCall call{.device = parts_.device,
                       .kernels = parts_.kernels,
                       .stream = parts_.stream,
                       .scratch = parts_.state.scratch(),
                       .groups = parts_.groups,
                       .samples = {},
                       .dropout = false,
                       .action = id,
                       .rows = rows};
  parts_.state.stage(action.stage).run(action, call, batch);
  if (!parts_.state.makes_logits(action.stage)) return;
  const TensorView to = parts_.state.host_logits().at(action.microbatch).slice(0, first, first + rows.count);
  parts_.device.download(to, batch.result.slice(0, 0, rows.count), parts_.stream);
}

TensorView Generator::logits(int microbatch) const {
  TRIAX_REQUIRE(parts_.state.makes_logits(), "pipeline rank {} has no logits: the last stage has them",
                parts_.state.program().rank());
  return parts_.state.host_logits().at(microbatch).slice(0, 0, appended_);
}

} // namespace triax::executor
