// SPDX-License-Identifier: Apache-2.0
// triax import: models of other programs as checkpoints.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include "checkpoint/checkpoint_verbs.hpp"
#include "common/errors_out.hpp"
#include "common/flag_checks.hpp"
#include "common/list_option.hpp"
#include "common/printable_line.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/shell_command.hpp"
#include "common/table.hpp"
#include "common/verbs.hpp"
#include "data/dataset.hpp"
#include "data/tokenizer_difference.hpp"
#include "hf/carried_files.hpp"
#include "hf/imported_tokenizer.hpp"
#include "hf/model_import.hpp"
#include "report/units.hpp"

namespace triax::app {

namespace {

struct ImportArguments {
  std::string folder, output, run, model, data;
  std::vector<std::string> paths, ignored;
};

hf::ImportRequest request_of(const ImportArguments& arguments) {
  return {.folder = arguments.folder,
          .output = arguments.output,
          .run = arguments.run,
          .model = arguments.model,
          .data = arguments.data,
          .paths = {arguments.paths.begin(), arguments.paths.end()},
          .ignored = {arguments.ignored.begin(), arguments.ignored.end()}};
}

/// The tokenizer that came along. That Triax cannot use it is not an error: weights do not need it.
struct CarriedTokenizer {
  hf::ImportedTokenizer read;
  std::string problem; // why it cannot be read; empty if there is none
};

CarriedTokenizer carried_tokenizer(const hf::ImportedModel& made) {
  try {
    return {hf::read_imported_tokenizer(made.output / hf::kCarriedFolder), {}};
  } catch (const Error& error) {
    return {{}, text("Triax cannot use its tokenizer: {}: {}", error.where(), error.message())};
  }
}

std::string prepare_command(const std::string& prefix, const hf::ImportedTokenizer& tokenizer) {
  return text("{} data prepare --input TEXT --output {} {}", program(), shell_word(prefix),
              hf::prepare_flags(tokenizer));
}

/// Prints the next step: prepare the data, whose prefix may have been named.
void print_data_step(const std::string& named, const CarriedTokenizer& tokenizer, std::ostream& out) {
  if (!tokenizer.problem.empty()) out << printable_line(tokenizer.problem) << '\n';
  std::string step;
  if (!tokenizer.read.tokenizer) {
    step = "make token files with its tokenizer, as docs/models.md says, and name their PREFIX as data.path";
    if (!named.empty()) step = text("make the token files {} with its tokenizer, as docs/models.md says", named);
  } else {
    step = prepare_command(named.empty() ? "PREFIX" : named, tokenizer.read);
    if (named.empty()) step += ", and PREFIX as data.path";
  }
  out << printable_line("Before it trains, it needs data: " + step) << '\n';
}

/// The warning that the existing data do not have the model's tokenizer. Empty if they do, or if one is not known.
std::optional<Error> different_data(const ImportArguments& arguments, const hf::ImportedTokenizer& tokenizer) {
  const std::optional<data::TokenizerInfo> of_data = data::find_tokenizer_info(arguments.data);
  if (!of_data || !tokenizer.tokenizer) return std::nullopt;
  const data::TokenizerInfo of_model = data::info_of(*tokenizer.tokenizer);
  if (data::gives_same_ids(*of_data, of_model)) return std::nullopt;
  return Error(data::different_tokenizers(arguments.data, *of_data, tokenizer.from, of_model), {},
               text("prepare the text with that of the model: {}, and PREFIX as data.path",
                    prepare_command("PREFIX", tokenizer)));
}

bool has_data(const ImportArguments& arguments) {
  std::error_code unknown;
  return !arguments.data.empty() && std::filesystem::exists(arguments.data + ".bin", unknown);
}

void print_imported(const ImportArguments& arguments, const hf::ImportedModel& made) {
  std::ostream& out = result_out();
  out << printable_line(text("{}: {} as {}, {} parameters in {} tensors, {}", made.output, made.architecture,
                             made.plugin, grouped(made.parameters), grouped(static_cast<long long>(made.tensors)),
                             report::bytes_text(made.bytes)))
      << '\n'
      << printable_line(text("{}: a run that begins with it", arguments.run)) << '\n';
  if (!hf::has_tokenizer(made.files))
    out << printable_line(text("No tokenizer files: the model's folder does not have {}", hf::kTokenizerFiles)) << '\n';
  const CarriedTokenizer tokenizer = carried_tokenizer(made);
  if (!has_data(arguments)) return print_data_step(arguments.data, tokenizer, out);
  if (const std::optional<Error> warning = different_data(arguments, tokenizer.read)) return print_warning(*warning);
  out << text("next: {} train {}", program(), shell_word(arguments.run)) << '\n';
}

int import_model(const ImportArguments& arguments) {
  std::optional<hf::ModelImport> from;
  try {
    from.emplace(request_of(arguments));
  } catch (const Error& error) {
    print_problem(error.what());
    return kRefused;
  }
  if (!from->refusals().empty()) return refuse(from->refusals(), false);
  hf::ImportedModel made;
  const int status = run_writing([&](const checkpoint::StopRequest& stop) { made = from->write(stop); });
  if (status != kDone) return status;
  print_imported(arguments, made);
  if (made.nonfinite) print_warning(*made.nonfinite);
  return status;
}

} // namespace

void add_import(CLI::App& program, int& status) {
  CLI::App* const verb = program.add_subcommand("import", "writes a checkpoint from a model of another program");
  verb->require_subcommand(1);
  CLI::App* const from = verb->add_subcommand("hf", "from a folder of Hugging Face's transformers, in safetensors");
  const auto arguments = std::make_shared<ImportArguments>();
  from->add_option("DIR", arguments->folder, "the model's folder: config.json, model.safetensors or its shards")
      ->check(not_empty())
      ->required();
  from->add_option("--output", arguments->output, "checkpoint to write, a folder that does not exist")
      ->type_name("DIR")
      ->check(not_empty())
      ->required();
  from->add_option("--run", arguments->run, "TOML to write, of a run that begins with the checkpoint")
      ->type_name("RUN.toml")
      ->check(not_empty())
      ->required();
  from->add_option("--data", arguments->data, "token files for the run's data.path, without .bin and .idx")
      ->type_name("PREFIX")
      ->check(not_empty());
  from->add_option("--model", arguments->model, "model plugin [the one that has the architecture]")
      ->type_name("MODEL")
      ->check(not_empty());
  repeated(from->add_option("--ignore", arguments->ignored,
                            "key of config.json that does not change what the model computes")
               ->type_name("KEY")
               ->check(not_empty()));
  repeated(from->add_option("--path", arguments->paths, "folder to search for plugins first")
               ->type_name("DIR")
               ->check(not_empty()));
  from->callback([arguments, &status] { status = import_model(*arguments); });
}

} // namespace triax::app
