// SPDX-License-Identifier: Apache-2.0
// triax checkpoint convert: the weights of a checkpoint as one safetensors file.
#include <optional>
#include <ostream>
#include <string>

#include "checkpoint/checkpoint_verbs.hpp"
#include "checkpoint/export_weights.hpp"
#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/printable_line.hpp"
#include "common/result_out.hpp"
#include "common/table.hpp"
#include "common/verbs.hpp"
#include "report/units.hpp"

namespace triax::app {

namespace {

struct ConvertArguments {
  std::string checkpoint, file, dtype;
  bool force = false;
};

int convert_checkpoint(const ConvertArguments& arguments) {
  const auto reader = open_checkpoint(arguments.checkpoint, "CHECKPOINT", false);
  if (!reader) return kRefused;
  std::optional<checkpoint::WeightsExport> weights_export;
  try {
    weights_export.emplace(*reader, arguments.file,
                           checkpoint::ExportChoice{export_type(arguments.dtype), arguments.force});
  } catch (const Error& error) {
    print_problem(error.what());
    return kRefused;
  }
  checkpoint::ExportedWeights exported;
  const int status = run_writing([&](const checkpoint::StopRequest& stop) { exported = weights_export->write(stop); });
  if (status == kDone)
    result_out() << text("{}: {} parameters in {} tensors, {}\n", printable_line(arguments.file),
                         grouped(exported.parameters), grouped(static_cast<long long>(exported.tensors)),
                         report::bytes_text(exported.bytes));
  return status;
}

} // namespace

void add_checkpoint_convert(CLI::App& checkpoint, int& status) {
  const auto arguments = std::make_shared<ConvertArguments>();
  CLI::App* verb = checkpoint.add_subcommand("convert", "writes the weights as one safetensors file of whole tensors");
  verb->add_option("CHECKPOINT", arguments->checkpoint, kCheckpointDoc)->required();
  verb->add_option("FILE", arguments->file, "output file; written under a temporary name and renamed when complete")
      ->required();
  verb->add_option("--dtype", arguments->dtype, "type of the values, rounded once [that of the master weights]")
      ->check(one_of(export_types()))
      ->type_name("DTYPE");
  verb->add_flag("--force", arguments->force, "replaces an existing file");
  verb->callback([arguments, &status] { status = convert_checkpoint(*arguments); });
}

} // namespace triax::app
