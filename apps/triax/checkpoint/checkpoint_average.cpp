// SPDX-License-Identifier: Apache-2.0
// triax checkpoint average: the mean of the weights of several checkpoints.
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "checkpoint/average_weights.hpp"
#include "checkpoint/checkpoint_verbs.hpp"
#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/printable_line.hpp"
#include "common/result_out.hpp"
#include "common/table.hpp"
#include "common/verbs.hpp"
#include "report/units.hpp"
#include "train/find_checkpoint.hpp"

namespace triax::app {

namespace {

struct AverageArguments {
  std::string output;
  std::vector<std::string> checkpoints;
  int last = 0; // 0: `checkpoints` are named
};

/// The newest ones of a run, oldest first.
std::vector<std::filesystem::path> newest_of(const std::string& run, int count) {
  const train::RunCheckpoints all = train::find_checkpoints(run);
  const auto wanted = static_cast<std::size_t>(count);
  if (wanted > all.found.size())
    throw Error(text("--last must be at most {}, the number of complete checkpoints in {}, got {}", all.found.size(),
                     all.folder, count),
                {}, "to keep more of them, train with a larger checkpoint.keep");
  std::vector<std::filesystem::path> out;
  for (std::size_t i = all.found.size() - wanted; i < all.found.size(); ++i) out.push_back(all.found[i].folder);
  return out;
}

std::vector<std::filesystem::path> averaged(const AverageArguments& arguments) {
  if (arguments.last > 0) return newest_of(arguments.checkpoints.front(), arguments.last);
  std::vector<std::filesystem::path> out;
  out.reserve(arguments.checkpoints.size());
  for (const std::string& named : arguments.checkpoints) out.push_back(train::find_checkpoint(named));
  return out;
}

int average_checkpoints(const AverageArguments& arguments) {
  std::vector<std::filesystem::path> from;
  std::optional<checkpoint::WeightsAverage> mean;
  try {
    from = averaged(arguments);
    mean.emplace(from, arguments.output);
  } catch (const Error& error) {
    print_problem(error.what());
    return kRefused;
  }
  checkpoint::AveragedWeights made;
  const int status = run_writing([&](const checkpoint::StopRequest& stop) { made = mean->write(stop); });
  if (status != kDone) return status;
  std::string line =
      text("{}: the mean of {}, {} parameters in {} tensors, {}\n", printable_line(arguments.output),
           report::counted_text(static_cast<std::int64_t>(from.size()), "checkpoint"), grouped(made.parameters),
           grouped(static_cast<long long>(made.tensors)), report::bytes_text(made.bytes));
  for (const std::filesystem::path& folder : from) line += "  " + printable_line(folder.string()) + '\n';
  result_out() << line;
  return status;
}

} // namespace

void add_checkpoint_average(CLI::App& checkpoint, int& status) {
  const auto arguments = std::make_shared<AverageArguments>();
  CLI::App* verb = checkpoint.add_subcommand(
      "average", "writes the mean of the weights of several checkpoints as a checkpoint, which a run can begin with");
  verb->add_option("OUTPUT", arguments->output,
                   "output folder; written under a temporary name and renamed when complete")
      ->type_name("DIR")
      ->required();
  with_several_paths(*verb, verb->add_option("CHECKPOINT", arguments->checkpoints,
                                             "the checkpoints, each named as in checkpoint show; with --last, one run")
                                ->required());
  CLI::Option* last = verb->add_option("--last", arguments->last, "averages the newest N checkpoints of a run");
  last->check(integer_in(1, 1 << 20))->type_name("N");
  verb->callback([arguments, &status] {
    if (arguments->last > 0 && arguments->checkpoints.size() > 1)
      throw CLI::ValidationError(text("with --last, name one run; got {}", arguments->checkpoints.size()));
    status = average_checkpoints(*arguments);
  });
}

} // namespace triax::app
