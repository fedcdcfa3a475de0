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
#include "common/table.hpp"
#include "common/verbs.hpp"
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

/// The flags of triax data prepare for the tokenizer that came along. Empty if Triax cannot use it; that is not an
/// error: weights do not need it.
std::string tokenizer_flags(const hf::ImportedModel& made, std::ostream& out) {
  try {
    const std::filesystem::path folder = made.output / hf::kCarriedFolder;
    const hf::ImportedTokenizer found = hf::read_imported_tokenizer(folder);
    if (!found.tokenizer) return {};
    if (!found.from.ends_with("vocab.json")) return "--tokenizer " + found.from;
    return text("--tokenizer gpt2 --vocab {} --merges {}", found.from, folder / "merges.txt");
  } catch (const Error& error) {
    out << printable_line(text("Triax cannot use its tokenizer: {}: {}", error.where(), error.message())) << '\n';
    return {};
  }
}

/// Prints the next step: prepare the data, whose prefix may have been named.
void print_data_step(const hf::ImportedModel& made, const std::string& named, std::ostream& out) {
  const std::string flags = tokenizer_flags(made, out);
  std::string step;
  if (flags.empty()) {
    step = "make token files with its tokenizer, as docs/models.md says, and name their PREFIX as data.path";
    if (!named.empty()) step = text("make the token files {} with its tokenizer, as docs/models.md says", named);
  } else {
    step = text("triax data prepare --input TEXT --output {} {}", named.empty() ? "PREFIX" : named, flags);
    if (named.empty()) step += ", and PREFIX as data.path";
  }
  out << printable_line("Before it trains, it needs data: " + step) << '\n';
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
  if (has_data(arguments)) {
    out << printable_line(text("next: triax train {}", arguments.run)) << '\n';
  } else {
    print_data_step(made, arguments.data, out);
  }
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
