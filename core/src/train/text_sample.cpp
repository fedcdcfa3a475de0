// SPDX-License-Identifier: Apache-2.0
#include "train/text_sample.hpp"

#include <algorithm>
#include <utility>

#include "executor/executor.hpp"
#include "train/generate_text.hpp"

namespace triax::train {

SamplePrompt SamplePrompt::of(const config::RunConfig& run, std::int64_t model_positions) {
  if (run.data.training.paths.empty())
    throw Error("eval.sample needs the tokenizer of the training data, but data.path is not set", {},
                "set data.path, or remove eval.sample");
  const std::filesystem::path& corpus = run.data.training.paths.front();
  SamplePrompt out;
  out.tokenizer = data::open_text_tokenizer_of(corpus);
  const std::int64_t vocab = out.tokenizer.tokenizer->vocab();
  if (vocab > run.vocab)
    throw Error(text("the tokenizer of {} has {} tokens, but model.vocab = {}", corpus.string(), vocab, run.vocab), {},
                text("use a model.vocab of at least {}, or remove eval.sample", vocab));
  out.tokens = data::encode_prompt(out.tokenizer, run.eval.sample);
  data::check_prompt_length(out.tokens, model_positions);
  out.positions = std::min(model_positions, static_cast<std::int64_t>(out.tokens.size()) + run.eval.sample_tokens);
  return out;
}

std::int64_t sample_positions(const config::RunConfig& run, std::int64_t model_positions) {
  if (run.data.training.paths.empty()) return model_positions;
  return SamplePrompt::of(run, model_positions).positions;
}

TextSample::TextSample(const Parts& parts)
    : parts_(parts),
      prompt_(SamplePrompt::of(parts.run, parts.plugins.model().info().sequence)),
      trained_(parts.prepared.trained()),
      request_(sample_request(parts.run, parts.layout, parts.rank, parts.plugins, trained_, prompt_.positions)),
      state_(request_) {
  const executor::GenerateState::Plan plan = state_.plan(parts.plugins.kernels());
  if (!plan.refusals.empty()) throw to_error(plan.refusals, parts.run.kernels.name);
  scratch_ = plan.scratch;
  state_.allocate(parts.device, parts.stream, scratch_);
  parts.groups.register_memory(state_.blocks());
  generator_.emplace(executor::GeneratorParts{parts.device, parts.stream, parts.plugins.kernels(),
                                              parts.groups.groups(), state_, request_.assumptions, parts.timeout_s});
  agreement_.emplace(parts.device, parts.stream, parts.groups.of_axes(), kMaxAgreed);
}

SampledText TextSample::make(const executor::Request& request) {
  const config::RunConfig::EvalKeys& eval = parts_.run.eval;
  const GenerateOptions options{
      .sampling = {.temperature = eval.sample_temperature, .seed = parts_.run.train.seed},
      .max_tokens = eval.sample_tokens,
      .ends = prompt_.tokenizer.ends,
      .tokenizer = prompt_.tokenizer.tokenizer.get(),
  };
  SampledText out;
  bool is_given = false;
  const Conversation conversation{
      .next_prompt = [&]() -> std::optional<std::vector<std::int32_t>> {
        if (std::exchange(is_given, true)) return std::nullopt;
        return prompt_.tokens;
      },
      .text = [&](std::size_t, std::string_view part) { out.text += part; },
      .ended = [](std::size_t, const GeneratedText&) {},
      .answered = [](const Answer&) {},
  };
  tokens_ = 0;
  try {
    out.request = generate_text(*this, options, request, parts_.rank == 0 ? &conversation : nullptr);
  } catch (const executor::NonfiniteError& error) {
    tokens_ = kNoText; // no text is in progress any more: after this error, the ranks still save the step
    throw executor::NonfiniteError(Error(error.message(), text("{}, {}", kTextSample, error.where()), error.hint()));
  }
  tokens_ = kNoText;
  return out;
}

void TextSample::agree(std::span<std::int32_t> values) {
  agreement_->largest(values, deadline_in(parts_.timeout_s));
}

std::string TextSample::position() const {
  const std::int64_t tokens = tokens_;
  return tokens == kNoText ? "" : text("text of eval.sample, after {} tokens", tokens);
}

std::vector<MemoryRow> TextSample::memory() const {
  const DeviceKind device = parts_.device.kind();
  return memory_rows_of(kTextSample, state_.memory(scratch_, device), device);
}

TextSample::Plan TextSample::plan(const config::RunConfig& run, const Layout& layout, int rank,
                                  const RankPlugins& plugins, const Preparation& prepared, std::int64_t positions,
                                  DeviceKind device) {
  const executor::TrainedStages trained = prepared.trained();
  executor::GenerateState state(sample_request(run, layout, rank, plugins, trained, positions));
  const executor::GenerateState::Plan plan = state.plan(plugins.kernels());
  return {memory_rows_of(kTextSample, state.memory(plan.scratch, device), device), plan.refusals};
}

} // namespace triax::train
