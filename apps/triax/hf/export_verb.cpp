// SPDX-License-Identifier: Apache-2.0
// triax export: checkpoints for other programs.
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_verbs.hpp"
#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/memory_limit.hpp"
#include "common/printable_line.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/table.hpp"
#include "common/verbs.hpp"
#include "hf/exported_tokenizer.hpp"
#include "hf/model_export.hpp"
#include "report/units.hpp"

namespace triax::app {

namespace {

struct ExportArguments {
  std::string checkpoint, folder, dtype, files, architecture;
  std::string shard_size = text("{}GB", hf::kMaxShardBytes / 1'000'000'000);
  std::vector<std::string> paths;
};

hf::ExportRequest request_of(const ExportArguments& arguments, const ExportedTokenizer& tokenizer) {
  return {.folder = arguments.folder,
          .dtype = export_type(arguments.dtype),
          .shard_bytes = parse_memory_limit(arguments.shard_size).bytes,
          .architecture = arguments.architecture,
          .files = arguments.files.empty() ? tokenizer.files : std::filesystem::path(arguments.files),
          .tokenizer = tokenizer.made,
          .paths = {arguments.paths.begin(), arguments.paths.end()}};
}

void print_exported(const hf::ExportedModel& made, const ExportedTokenizer& tokenizer) {
  const std::string shards = made.shards == 1 ? "" : text(" in {} files", made.shards);
  result_out() << printable_line(text("{}: {}, {} parameters in {} tensors, {}{}", made.folder, made.architecture,
                                      grouped(made.parameters), grouped(static_cast<long long>(made.tensors)),
                                      report::bytes_text(made.bytes), shards))
               << '\n';
  for (const std::string& note : made.notes) result_out() << printable_line(note) << '\n';
  if (!tokenizer.note.empty()) result_out() << printable_line(tokenizer.note) << '\n';
}

int export_model(const ExportArguments& arguments) {
  const auto reader = open_checkpoint(arguments.checkpoint, "CHECKPOINT", false);
  if (!reader) return kRefused;
  const ExportedTokenizer tokenizer = arguments.files.empty() ? find_tokenizer(*reader) : ExportedTokenizer{};
  std::optional<hf::ModelExport> to;
  try {
    to.emplace(*reader, request_of(arguments, tokenizer));
  } catch (const Error& error) {
    print_problem(error.what());
    return kRefused;
  }
  if (!to->refusals().empty()) return refuse(to->refusals(), false);
  hf::ExportedModel made;
  const int status = run_writing([&](const checkpoint::StopRequest& stop) { made = to->write(stop); });
  if (status != kDone) return status;
  print_exported(made, tokenizer);
  if (tokenizer.warning) print_warning(*tokenizer.warning);
  return status;
}

} // namespace

void add_export(CLI::App& program, int& status) {
  CLI::App* const verb = program.add_subcommand("export", "writes the weights of a checkpoint for another program");
  verb->require_subcommand(1);
  CLI::App* const to = verb->add_subcommand("hf", "as a folder that Hugging Face's transformers loads");
  const auto arguments = std::make_shared<ExportArguments>();
  to->add_option("CHECKPOINT", arguments->checkpoint, kCheckpointDoc)->check(not_empty())->required();
  to->add_option("DIR", arguments->folder, "folder to write; written under a temporary name and renamed when complete")
      ->check(not_empty())
      ->required();
  to->add_option("--dtype", arguments->dtype, "type of the values, rounded once [that of the master weights]")
      ->check(one_of(export_types()))
      ->type_name("DTYPE");
  to->add_option("--max-shard-size", arguments->shard_size, "most bytes of tensors in a file, such as 5GB")
      ->check(CLI::Validator(is_memory_limit, {}))
      ->type_name("SIZE")
      ->capture_default_str();
  to->add_option("--files", arguments->files,
                 "folder whose tokenizer files are copied [those of the checkpoint, the imported model, or the data]")
      ->type_name("DIR")
      ->check(not_empty());
  to->add_option("--architecture", arguments->architecture, "architecture [the first that can store the model]")
      ->type_name("NAME")
      ->check(not_empty());
  repeated(to->add_option("--path", arguments->paths, "folder to search for plugins first")
               ->type_name("DIR")
               ->check(not_empty()));
  to->callback([arguments, &status] { status = export_model(*arguments); });
}

} // namespace triax::app
