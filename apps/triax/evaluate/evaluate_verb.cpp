// SPDX-License-Identifier: Apache-2.0
// triax evaluate: the loss of a checkpoint's weights on held-out data. Ranks are started as for `triax train`
// (train/train_verb.cpp); nothing is written.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "common/flag_checks.hpp"
#include "common/verbs.hpp"
#include "generate/generate_ranks.hpp"
#include "train/train_files.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

constexpr int kSequences = 8, kMaxSequences = 1024;

} // namespace

void add_evaluate(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("evaluate", "loss, perplexity and bits per byte of a checkpoint's weights");
  const auto arguments = std::make_shared<TrainArguments>();
  arguments->evaluates = true;
  verb->add_option("RUN.toml", arguments->file, "the run, or its folder")->required();
  verb->add_option("--checkpoint", arguments->checkpoint, text("{} [the newest of RUN.toml]", kCheckpointDoc))
      ->type_name("DIR")
      ->check(not_empty());
  const auto data = std::make_shared<std::string>();
  verb->add_option("--data", *data, "token files to evaluate on, without .bin and .idx, instead of data.validation")
      ->type_name("PREFIX")
      ->check(not_empty());
  const auto choices = std::make_shared<GenerateArguments>();
  CLI::Option* const of_choices =
      verb->add_option("--choices", choices->choices,
                       "JSON lines with context, endings and label: accuracy instead of the loss. "
                       "RUN.toml may be a checkpoint or a folder of transformers");
  of_choices->type_name("FILE")->check(not_empty())->excludes("--data");
  choices->samples = kSequences;
  verb->add_option("--sequences", choices->samples, text("endings that --choices computes together [{}]", kSequences))
      ->type_name("N")
      ->check(integer_in(1, kMaxSequences))
      ->needs(of_choices);
  add_tokenizer_flags(*verb, *choices);
  verb->get_option("--tokenizer")->needs(of_choices);
  add_overrides(*verb, arguments->overrides);
  verb->add_flag("--json", arguments->json, "prints the result as one JSON object");
  verb->callback([arguments, choices, data, &status] {
    if (!choices->choices.empty()) {
      choices->checkpoint = arguments->checkpoint.empty() ? arguments->file : arguments->checkpoint;
      choices->overrides = arguments->overrides;
      choices->json = arguments->json;
      status = run_generate(*choices);
      return;
    }
    if (!data->empty()) {
      const std::string flag = "--data " + *data;
      for (const char* key : {"data.validation_paths", "data.validation_weights"})
        arguments->overrides.push_back({key, "[]", flag});
      arguments->overrides.push_back({"data.validation", *data, flag});
    }
    status = run_ranks(*arguments);
  });
}

} // namespace triax::app
