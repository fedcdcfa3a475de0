// SPDX-License-Identifier: Apache-2.0
// triax checkpoint show: what a checkpoint holds.
#include <ostream>
#include <string>

#include "checkpoint/checkpoint_contents.hpp"
#include "checkpoint/checkpoint_verbs.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"

namespace triax::app {

namespace {

struct ShowArguments {
  std::string checkpoint;
  bool all = false, json = false;
};

int show_checkpoint(const ShowArguments& arguments) {
  const auto reader = open_checkpoint(arguments.checkpoint, "CHECKPOINT", arguments.json);
  if (!reader) return kRefused;
  result_out() << (arguments.json ? contents_json(*reader) : contents_text(*reader, arguments.all));
  return kDone;
}

} // namespace

void add_checkpoint_show(CLI::App& checkpoint, int& status) {
  const auto arguments = std::make_shared<ShowArguments>();
  CLI::App* verb =
      checkpoint.add_subcommand("show", "describes a checkpoint: training, plugins, layout, sizes, tensors");
  verb->add_option("CHECKPOINT", arguments->checkpoint, kCheckpointDoc)->required();
  verb->add_flag("--all", arguments->all, "prints every tensor, every file, and the keys of the run");
  verb->add_flag("--json", arguments->json, "prints one JSON object");
  verb->callback([arguments, &status] { status = show_checkpoint(*arguments); });
}

} // namespace triax::app
