// SPDX-License-Identifier: Apache-2.0
// One rank of a job that generates. Under Triax's launcher, rank 0 sends its texts to the launcher; under another, it
// prints them.
#include <cstdlib>
#include <map>
#include <optional>

#include "common/verbs.hpp"
#include "generate/generate_ranks.hpp"
#include "generate/generate_report.hpp"
#include "generate/text_conversation.hpp"
#include "train/launched_rank.hpp"
#include "train/train_files.hpp"

namespace triax::app {

namespace {

class GeneratingProcess final : public LaunchedRank {
 public:
  GeneratingProcess(const GenerateArguments& arguments, const launch::Environment& environment)
      : LaunchedRank(environment), arguments_(arguments), report_(arguments) {}

 private:
  config::LoadResult load() override {
    config::LoadResult out;
    if (const auto refused = refused_source()) {
      out.refusals.push_back(*refused);
      return out;
    }
    const std::vector<config::Diagnostic> refused =
        load_text(arguments_, {environment().world, first_load()}, prepared_);
    out = prepared_.loaded;
    if (refused.empty()) return out;
    out.run.reset();
    out.refusals = refused;
    return out;
  }

  /// Under other launchers, standard input is that of one rank, and each rank would import the model.
  std::optional<config::Diagnostic> refused_source() const {
    if (is_ours()) return std::nullopt;
    if (is_model_folder(arguments_.checkpoint))
      return config::diagnostic(
          ErrorCode::kUnsupported,
          text("{}: is a folder of transformers, but each of the {} processes of {} would import it",
               arguments_.checkpoint, environment().world, launch::name_of(environment().launcher)),
          "write a checkpoint with triax import hf, and name that");
    if (arguments_.choices.empty() && (!arguments_.input.empty() || (!arguments_.prompt && arguments_.file.empty())))
      return config::diagnostic(ErrorCode::kUnsupported,
                                text("{} has started {} processes, which cannot all read standard input",
                                     launch::name_of(environment().launcher), environment().world),
                                "add --prompt TEXT or --file FILE");
    return std::nullopt;
  }

  void check() override {
    const auto own = [this](const train::Placement&) { return train::CheckedDevices{environment().local_rank, 1}; };
    refuse(check_text(arguments_, prepared_, {placement(), own})); // only this rank's device
  }

  /// All ranks must make the same calls with the same tokens, and rank 0 has the prompt.
  void add_keys(std::map<std::string, std::string>& keys) const override {
    const executor::SamplingOptions& sampling = arguments_.sampling;
    keys["--max-tokens"] = text("{}", arguments_.max_tokens);
    keys["--stop"] = text("{}", arguments_.stops.size());
    for (const std::string& stop : arguments_.stops) keys["--stop"] += ' ' + stop;
    keys["--samples"] = text("{}", arguments_.samples);
    keys["--temperature"] = text("{}", sampling.temperature);
    keys["--top-k"] = text("{}", sampling.top_k);
    keys["--top-p"] = text("{}", sampling.top_p);
    keys["--min-p"] = text("{}", sampling.min_p);
    keys["--repetition-penalty"] = text("{}", sampling.repetition_penalty);
    keys["--seed"] = text("{}", sampling.seed);
    std::size_t tokens = 0;
    for (const train::ScoredSequence& sequence : prepared_.scores.sequences) tokens += sequence.tokens.size();
    keys["--choices"] = text("{} endings, {} tokens", prepared_.scores.sequences.size(), tokens);
    keys["number of prompt tokens"] = text("{}", prepared_.tokens.size());
  }

  int print_refused(const std::vector<config::Diagnostic>& refusals) const override {
    return report_.refused(refusals);
  }
  void print_failed(int rank, const std::string& why) const override { report_.failed(rank, why); }
  bool wants_json() const override { return arguments_.json; }
  std::string ended_before(int signal) const override { return report_.ended_at_once(signal); }
  void end_at_once(int signal) const override {
    if (is_reporter()) report_.end_at_once(signal);
  }

  int work(launch::Job& job, os::StopSignals& signals) override {
    const auto log =
        rank_log(prepared_.run(), environment().rank, {is_reporter() ? LogLevel::trace : LogLevel::warn, !is_ours()});
    const os::StopSignalLog signals_to(signals, *log, end_of(arguments_));
    if (is_reporter()) log->info("{}", start_line(prepared_));
    std::optional<TextConversation> conversation;
    if (is_reporter()) conversation.emplace(arguments_, prepared_, signals);
    train::TextJob texts{text_options(arguments_, prepared_), conversation ? conversation->functions() : prompt_only()};
    std::optional<ChoiceScores> scores;
    if (!arguments_.choices.empty()) texts.scores = score_job(prepared_, scores.emplace(prepared_.examples));
    const launch::OnFailure failed = [&](int rank, const std::string& why, int status) {
      if (is_reporter()) report_.failed(rank, why, status);
    };
    const std::optional<train::LoopResult> result = launch::run_worker({prepared_.run(),
                                                                        environment(),
                                                                        job,
                                                                        placement().threads_per_rank(),
                                                                        *log,
                                                                        signals,
                                                                        {},
                                                                        nullptr,
                                                                        failed,
                                                                        &texts});
    if (!result) return is_reporter() ? report_.failed(-1, {}) : kFailed; // prints nothing if a rank was named
    if (!is_reporter()) return result->signal != 0 && !is_ours() ? 128 + result->signal : kDone;
    return report_.ended(
        {shown_weights(prepared_), prepared_.prompt.value_or(""), conversation->answer(), scores ? &*scores : nullptr},
        result->signal);
  }

  /// The conversation of rank 0, whose texts the launcher prints.
  train::Conversation prompt_only() {
    return {.next_prompt =
                [this, is_asked = false]() mutable {
                  std::optional<std::vector<std::int32_t>> out;
                  if (!is_asked) out = prepared_.tokens;
                  is_asked = true;
                  return out;
                },
            .text = {},
            .ended = {},
            .answered = {}};
  }

  const GenerateArguments& arguments_;
  const GenerateReport report_;
  PreparedText prepared_;
};

} // namespace

int generate_launched(const GenerateArguments& arguments, const launch::Environment& environment) {
  return GeneratingProcess(arguments, environment).run();
}

} // namespace triax::app
