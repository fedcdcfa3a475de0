// SPDX-License-Identifier: Apache-2.0
// triax checkpoint diff: how two checkpoints differ.
#include <ostream>
#include <string>

#include "checkpoint/checkpoint_verbs.hpp"
#include "checkpoint/difference_text.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"

namespace triax::app {

namespace {

/// As those of diff(1): 0 if the checkpoints are equal, 1 if they differ, 2 if they cannot be compared.
constexpr int kEqual = 0, kDifferent = 1;

struct DiffArguments {
  std::string first, second;
  bool weights = false, all = false, json = false;
};

int diff_checkpoints(const DiffArguments& arguments) {
  const auto first = open_checkpoint(arguments.first, "CHECKPOINT", arguments.json);
  if (!first) return kRefused;
  const auto second = open_checkpoint(arguments.second, "OTHER", arguments.json);
  if (!second) return kRefused;
  try {
    const checkpoint::CheckpointDifference found = checkpoint::compare(*first, *second, arguments.weights);
    const ComparedFolders folders{first->folder(), second->folder()};
    result_out() << (arguments.json ? difference_json(found, folders)
                                    : difference_text(found, folders, {arguments.weights, arguments.all}));
    return found.is_equal() ? kEqual : kDifferent;
  } catch (const Error& error) {
    return refuse(ErrorCode::kNotReadable, error, {}, arguments.json);
  }
}

} // namespace

void add_checkpoint_diff(CLI::App& checkpoint, int& status) {
  const auto arguments = std::make_shared<DiffArguments>();
  CLI::App* verb = checkpoint.add_subcommand(
      "diff", "compares two checkpoints tensor by tensor; exit status 1 if tensors or the state of training differ");
  verb->add_option("CHECKPOINT", arguments->first, kCheckpointDoc)->required();
  verb->add_option("OTHER", arguments->second, "the checkpoint to compare it with")
      ->type_name("CHECKPOINT")
      ->required();
  verb->add_flag("--weights", arguments->weights, "compares the weights only");
  verb->add_flag("--all", arguments->all, "prints every tensor that differs, even if there are many");
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([arguments, &status] { status = diff_checkpoints(*arguments); });
}

} // namespace triax::app
